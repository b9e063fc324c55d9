package hostconfig

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/informer"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

const (
	hidden       = "hunter2"
	fencingOfM   = "m-fencing-credentials"
	bmcSecret    = "rack1-u7-bmc"
	usersFencing = "rack1-u7-fencing"
)

// credentials returns a Secret with user name, password and further entries.
func credentials(name string, others map[string]string) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)},
		Data:       map[string][]byte{"username": []byte("root-" + hidden), "password": []byte(hidden)},
	}
	for key, value := range others {
		secret.Data[key] = []byte(value)
	}
	return secret
}

// twoNodes returns a world in which the Machine is one of the two nodes of a cluster, and the Agent of its
// host is registered. change edits the BareMetalHost.
func twoNodes(t *testing.T, change func(*metal3.Host)) *world {
	t.Helper()
	objects := lab()
	objects["machine"].GetLabels()[clusterv1.MachineControlPlaneLabel] = ""
	install, ok := objects["install"].(*hiveext.AgentClusterInstall)
	NewWithT(t).Expect(ok).To(BeTrue())
	install.Spec.ProvisionRequirements = hiveext.ProvisionRequirements{ControlPlaneAgents: 2}
	w := newWorld(t, values(objects)...)
	w.reconcile()
	w.makeImage()
	w.reconcile()
	host := bareMetalHost()
	host.Spec.BMC = metal3.BMC{
		Address:         "redfish-virtualmedia://root:" + hidden + "@bmc-7.example/redfish/v1/Systems/1",
		CredentialsName: bmcSecret, DisableCertificateVerification: true,
	}
	if change != nil {
		change(host)
	}
	w.create(host, discovered("a", "m", bootMAC))
	return w
}

// fencing returns the content of the created Secret, with its keys.
func (w *world) fencing() map[string]string {
	w.t.Helper()
	content := map[string]string{}
	for key, value := range read(w, fencingOfM, &corev1.Secret{}).Data {
		content[key] = string(value)
	}
	return content
}

// expectNothingLeaked expects that no object or event that users read contains the password.
func (w *world) expectNothingLeaked() {
	w.t.Helper()
	for _, c := range w.config().Status.Conditions {
		w.Expect(c.Message).NotTo(ContainSubstring(hidden), c.Type)
	}
	for event := w.event(); event != ""; event = w.event() {
		w.Expect(event).NotTo(ContainSubstring(hidden))
	}
	for key, value := range w.agent("a").Annotations {
		w.Expect(key + value).NotTo(ContainSubstring(hidden))
	}
}

func TestFencedHostGetsItsBMC(t *testing.T) {
	w := twoNodes(t, nil)
	w.create(credentials(bmcSecret, nil))
	w.reconcile()
	w.Expect(w.fencing()).To(Equal(map[string]string{
		"address": "redfish+https://bmc-7.example:443/redfish/v1/Systems/1", "username": "root-" + hidden, "password": hidden,
		"certificateVerification": "Disabled",
	}))
	made := read(w, fencingOfM, &corev1.Secret{})
	w.Expect(metav1.IsControlledBy(made, w.config())).To(BeTrue(), "deleted and moved with the config")
	w.Expect(made.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"))
	agent := w.agent("a")
	w.Expect(agent.Spec.ClusterDeploymentName).NotTo(BeNil())
	w.Expect(agent.Spec.FencingCredentialsSecretRef).To(Equal(fencingOfM))

	w.writes, w.reports = 0, 0
	w.reconcile()
	w.Expect(w.writes-w.reports).To(BeZero(), "no change")
	w.registerWithCluster("a", "known")
	w.reconcile()
	w.Expect(w.agent("a").Spec.Approved).To(BeTrue())
	w.expectNothingLeaked()
}

func TestChangedCredentialsReachAssistedServiceUntilApproval(t *testing.T) {
	w := twoNodes(t, nil)
	bmc := credentials(bmcSecret, nil)
	w.create(bmc)
	w.reconcile()
	before := w.agent("a")
	w.change(bmc, func() { bmc.Data["password"] = []byte("other") })
	w.Expect(w.reconciler.ofSecret(t.Context(), bmc)).To(ContainElement(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.config())}),
		"reconciled")
	w.reconcile()
	w.Expect(w.fencing()).To(HaveKeyWithValue("password", "other"))
	w.Expect(w.agent("a").Annotations[desired.FencingAnnotation]).NotTo(Equal(before.Annotations[desired.FencingAnnotation]),
		"assisted-service reads the Secret when the Agent changes")

	w.remove(read(w, fencingOfM, &corev1.Secret{}))
	w.reconcile()
	w.Expect(w.fencing()).To(HaveKeyWithValue("password", "other"), "the Secret exists while the Agent names it")

	w.registerWithCluster("a", "known")
	w.reconcile()
	w.change(bmc, func() { bmc.Data["password"] = []byte("later") })
	w.Expect(w.agent("a").Spec.Approved).To(BeTrue())
	w.reconcile()
	w.Expect(w.fencing()).To(HaveKeyWithValue("password", "other"), "assisted-service ignores later changes")
	w.Expect(w.reconciler.ofSecret(t.Context(), bmc)).To(BeEmpty())
}

func TestFencingCredentialsOfApprovedHostStay(t *testing.T) {
	w := twoNodes(t, nil)
	w.create(credentials(bmcSecret, nil))
	w.reconcile()
	w.registerWithCluster("a", "known")
	w.reconcile()
	w.Expect(w.agent("a").Spec.Approved).To(BeTrue())
	w.reconcile()

	restored := read(w, fencingOfM, &corev1.Secret{})
	w.change(restored, func() { restored.OwnerReferences[0].UID = "from-a-backup" })
	w.reconcile()
	w.Expect(metav1.IsControlledBy(read(w, fencingOfM, &corev1.Secret{}), w.config())).To(BeTrue(),
		"otherwise the garbage collector deletes it")

	w.remove(restored)
	w.Expect(w.reconciler.ofSecret(t.Context(),
		restored)).To(ContainElement(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.config())}), "reconciled")
	w.reconcile()
	w.Expect(w.fencing()).To(HaveKeyWithValue("password", hidden), "assisted-service reads the Secret before it processes the approval")

	w.remove(read(w, fencingOfM, &corev1.Secret{}))
	w.remove(read(w, bmcSecret, &corev1.Secret{}))
	w.reconcile()
	w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.HostBindingReason) // assisted-service changes it
}

func TestUserCredentialsHavePriority(t *testing.T) {
	w := twoNodes(t, func(host *metal3.Host) {
		host.Annotations = map[string]string{metal3.FencingCredentialsAnnotation: usersFencing}
	})
	w.create(credentials(bmcSecret, nil), credentials(usersFencing,
		map[string]string{"address": "https://fence.example:8443/redfish/v1/Systems/7", "certificateVerification": "Enabled"}))
	w.reconcile()
	w.Expect(w.agent("a").Spec.FencingCredentialsSecretRef).To(Equal(usersFencing))
	w.Expect(apierrors.IsNotFound(w.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: fencingOfM},
		&corev1.Secret{}))).To(BeTrue(), "no other Secret is created")
	before := w.agent("a").Annotations[desired.FencingAnnotation]
	own := read(w, usersFencing, &corev1.Secret{})
	w.change(own, func() { own.Data["password"] = []byte("other") })
	w.Expect(w.reconciler.ofSecret(t.Context(), own)).NotTo(BeEmpty())
	w.reconcile()
	w.Expect(w.agent("a").Annotations[desired.FencingAnnotation]).NotTo(Equal(before))
}

func TestUnusableCredentials(t *testing.T) {
	named := func(host *metal3.Host) {
		host.Annotations = map[string]string{metal3.FencingCredentialsAnnotation: usersFencing}
	}
	const address, verification = "https://fence.example:8443/redfish/v1/Systems/7", "Enabled"
	without := func(secret *corev1.Secret, key string) *corev1.Secret {
		delete(secret.Data, key)
		return secret
	}
	for situation, tc := range map[string]struct {
		change  func(*metal3.Host)
		secret  *corev1.Secret
		message string
	}{
		"IPMI": {
			func(host *metal3.Host) { host.Spec.BMC.Address = "ipmi://root:" + hidden + "@192.0.2.1" }, credentials(bmcSecret, nil),
			`spec.bmc.address of BareMetalHost rack1-u7, by which the other node fences it, has the driver "ipmi", which does not speak Redfish`,
		},
		"no such Secret": {
			nil, credentials("other", nil),
			"Secret rack1-u7-bmc with the credentials of the BMC of BareMetalHost rack1-u7 does not exist: create it",
		},
		"no password": {nil, without(credentials(bmcSecret, nil), "password"), "has no password: add it"},
		"no user":     {nil, without(credentials(bmcSecret, nil), "username"), "has no username: add it"},
		"no Secret is named": {
			func(host *metal3.Host) { host.Spec.BMC.CredentialsName = "" }, credentials("other", nil),
			"has no spec.bmc.credentialsName",
		},
		"user Secret is missing": {
			named, credentials(bmcSecret, nil),
			"Secret rack1-u7-fencing with the credentials of the BMC of BareMetalHost rack1-u7 does not exist",
		},
		"user Secret without address": {
			named, credentials(usersFencing, map[string]string{"certificateVerification": verification}),
			"the key address must be like",
		},
		"user Secret without port": {named, credentials(usersFencing,
			map[string]string{
				"address":                 "https://fence.example/redfish/v1/Systems/7",
				"certificateVerification": verification,
			}), "with port and path"},
		"user Secret without password": {named, without(credentials(usersFencing,
			map[string]string{"address": address, "certificateVerification": verification}), "password"), "has no key password: add it"},
		"user Secret without certificate check": {
			named, credentials(usersFencing, map[string]string{"address": address}),
			"the key certificateVerification must be Enabled or Disabled",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			w := twoNodes(t, tc.change)
			w.create(tc.secret)
			w.reconcile()
			w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.FencingCredentialsUnusableReason)
			w.Expect(meta.FindStatusCondition(w.config().Status.Conditions, bootstrapv1.HostBoundCondition).Message).To(ContainSubstring(tc.message))
			w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil())
			w.expectNothingLeaked()
		})
	}
}

func TestForeignFencingSecretStays(t *testing.T) {
	w := twoNodes(t, nil)
	w.create(credentials(bmcSecret, nil), credentials(fencingOfM, nil))
	w.reconcile()
	w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.FencingCredentialsUnusableReason)
	w.Expect(w.fencing()).NotTo(HaveKey("address"))
	w.remove(read(w, fencingOfM, &corev1.Secret{}))
	w.reconcile()
	w.Expect(w.fencing()).To(HaveKey("address"))
}

// TestForeignFencingSecretMissingInCache: the first write is forced and would overwrite the Secret.
func TestForeignFencingSecretMissingInCache(t *testing.T) {
	w := twoNodes(t, nil)
	w.create(credentials(bmcSecret, nil), credentials(fencingOfM, nil))
	theirs := read(w, fencingOfM, &corev1.Secret{})
	w.metadata.Reader = lacking{w.metadata.Reader, fencingOfM}
	w.reconcile()
	w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.FencingCredentialsUnusableReason)
	w.Expect(read(w, fencingOfM, &corev1.Secret{})).To(Equal(theirs))
}

func TestOtherTopologiesAreNotFenced(t *testing.T) {
	for situation, change := range map[string]func(*hiveext.AgentClusterInstall){
		"an arbiter":    func(install *hiveext.AgentClusterInstall) { install.Spec.ProvisionRequirements.ArbiterAgents = 1 },
		"three masters": func(install *hiveext.AgentClusterInstall) { install.Spec.ProvisionRequirements.ControlPlaneAgents = 3 },
		"an arbiter that this hub cannot count": func(install *hiveext.AgentClusterInstall) {
			install.Annotations = map[string]string{bootstrapv1.ClusterWithArbiterAnnotation: ""}
		},
	} {
		t.Run(situation, func(t *testing.T) {
			w := twoNodes(t, nil)
			install := read(w, "cp", &hiveext.AgentClusterInstall{})
			w.change(install, func() { change(install) })
			w.create(credentials(bmcSecret, nil))
			w.reconcile()
			w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil())
			w.Expect(w.agent("a").Spec.FencingCredentialsSecretRef).To(BeEmpty())
		})
	}
}

func TestTwoNodesHaveNoWorkers(t *testing.T) {
	for _, state := range []string{"insufficient", "adding-hosts"} {
		w := booted(t)
		install := read(w, "cp", &hiveext.AgentClusterInstall{})
		w.change(install, func() {
			install.Spec.ProvisionRequirements, install.Status.DebugInfo.State = hiveext.ProvisionRequirements{ControlPlaneAgents: 2}, state
		})
		w.create(discovered("a", "m", bootMAC))
		w.reconcile()
		w.lasts(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterNotAcceptingHostsReason)
		w.Expect(meta.FindStatusCondition(w.config().Status.Conditions,
			bootstrapv1.HostBoundCondition).Message).To(ContainSubstring("a two-node cluster with fencing has no workers"))
		w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil())
	}
}

// TestWorkersOfMovedClusterWithArbiter: a cluster with an arbiter was moved to a hub whose
// AgentClusterInstalls have no field for arbiters. This hub cannot distinguish it from a cluster of two
// nodes.
func TestWorkersOfMovedClusterWithArbiter(t *testing.T) {
	w := booted(t)
	install := read(w, "cp", &hiveext.AgentClusterInstall{})
	w.change(install, func() {
		install.Annotations = map[string]string{bootstrapv1.ClusterWithArbiterAnnotation: ""}
		install.Spec.ProvisionRequirements, install.Status.DebugInfo.State = hiveext.ProvisionRequirements{ControlPlaneAgents: 2}, "adding-hosts"
	})
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil())
}

func TestAssistedServiceWithoutFencing(t *testing.T) {
	t.Run("its Agents have no such field", func(t *testing.T) {
		w := twoNodes(t, nil)
		bmc := credentials(bmcSecret, nil)
		w.create(bmc)
		w.reconcile()
		w.refusal = errors.New("failed to create typed patch object (lab/a; agent-install.openshift.io/v1beta1, Kind=Agent): " +
			".spec.fencingCredentialsSecretRef: field not declared in schema")
		agent := w.agent("a")
		w.change(agent, func() { agent.Spec = aiv1beta1.AgentSpec{} })
		result := w.reconcile()
		w.Expect(result.RequeueAfter).To(BeNumerically("<=", reconcile.RefusedDelay))
		w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.InvalidConfigurationReason)
		w.Expect(meta.FindStatusCondition(w.config().Status.Conditions,
			bootstrapv1.HostBoundCondition).Message).To(ContainSubstring("its Agents have no spec.fencingCredentialsSecretRef"))
	})
	t.Run("it was started without", func(t *testing.T) {
		w := twoNodes(t, nil)
		w.create(credentials(bmcSecret, nil))
		w.reconcile()
		w.registerWithCluster("a", "known")
		agent := w.agent("a")
		w.change(agent, func() {
			agent.Status.Conditions[0] = conditionsv1.Condition{
				Type: aiv1beta1.SpecSyncedCondition, Status: corev1.ConditionFalse,
				Reason: "InputError", Message: "TNF clusters support is disabled, cannot set",
			}
		})
		w.reconcile()
		w.wants(bootstrapv1.HostApprovedCondition, metav1.ConditionFalse, bootstrapv1.InvalidConfigurationReason)
		message := meta.FindStatusCondition(w.config().Status.Conditions, bootstrapv1.HostApprovedCondition).Message
		w.Expect(strings.HasSuffix(message, "need an assisted-service that is started with TNF_CLUSTERS_SUPPORT=true")).To(BeTrue(), message)
		w.Expect(w.agent("a").Spec.Approved).To(BeFalse())
	})
}

// TestCredentialsAreRemovedAfterInstallation: the password of a BMC is copied only while assisted-service may
// read it.
func TestCredentialsAreRemovedAfterInstallation(t *testing.T) {
	w := twoNodes(t, nil)
	w.create(credentials(bmcSecret, nil))
	w.reconcile()
	w.registerWithCluster("a", "known")
	w.reconcile()
	w.Expect(w.fencing()).To(HaveKeyWithValue("password", hidden))
	w.enter("a", "installed")
	w.knowNode()
	w.reconcile()
	w.reconcile()
	w.reconcile()
	retired := read(w, fencingOfM, &corev1.Secret{})
	w.Expect(retired.Data).To(BeEmpty())
	w.Expect(metav1.IsControlledBy(retired, w.config())).To(BeTrue(), "deleted with the config")
	writes := w.writes
	w.restart()
	w.reconcile()
	w.Expect(w.writes).To(Equal(writes))
}

// TestUnusedCredentialsAreRemoved: the password of a BMC is not kept until the config is deleted if no
// component needs it.
func TestUnusedCredentialsAreRemoved(t *testing.T) {
	w := twoNodes(t, nil)
	w.create(credentials(bmcSecret, nil), credentials(usersFencing,
		map[string]string{"address": "https://fence.example:8443/redfish/v1/Systems/7", "certificateVerification": "Enabled"}))
	w.reconcile()
	w.Expect(w.fencing()).To(HaveKeyWithValue("password", hidden))
	w.Expect(w.agent("a").Spec.FencingCredentialsSecretRef).To(Equal(fencingOfM))

	name := func(secret string) {
		host := read(w, "rack1-u7", bareMetalHost())
		w.change(host, func() { host.Annotations = map[string]string{metal3.FencingCredentialsAnnotation: secret} })
	}
	name(usersFencing)
	w.reconcile()
	w.Expect(w.agent("a").Spec.FencingCredentialsSecretRef).To(Equal(usersFencing))
	w.Expect(w.fencing()).To(HaveKeyWithValue("password", hidden), "the Agent named it until now")
	w.reconcile()
	w.Expect(read(w, fencingOfM, &corev1.Secret{}).Data).To(BeEmpty())
	writes := w.writes
	w.reconcile()
	w.Expect(w.writes).To(Equal(writes))

	name("")
	w.reconcile()
	w.Expect(w.fencing()).To(HaveKeyWithValue("password", hidden), "needed again")
	w.Expect(w.agent("a").Spec.FencingCredentialsSecretRef).To(Equal(fencingOfM))
}

// TestForeignCredentialsStay: a Secret that belongs to another object is foreign, independent of its
// annotation.
func TestForeignCredentialsStay(t *testing.T) {
	w := twoNodes(t, nil)
	foreign := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "foreign"}}
	theirs := credentials(fencingOfM, nil)
	theirs.Annotations, theirs.OwnerReferences = map[string]string{desired.FencingAnnotation: "x"}, foreign
	w.create(credentials(bmcSecret, nil), theirs)
	before := w.fencing()
	w.reconcile()
	w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.FencingCredentialsUnusableReason)
	w.Expect(w.fencing()).To(Equal(before))
	w.Expect(read(w, fencingOfM, &corev1.Secret{}).OwnerReferences).To(Equal(foreign))
}

// TestCredentialsAreDeletedWithRestoredConfig: after a restore from a backup the config has another UID, and
// the garbage collector deletes objects of the former config.
func TestCredentialsAreDeletedWithRestoredConfig(t *testing.T) {
	w := twoNodes(t, nil)
	w.create(credentials(bmcSecret, nil))
	w.reconcile()
	w.registerWithCluster("a", "known")
	w.reconcile()
	config := w.config()
	config.Status.Conditions = append(config.Status.Conditions, metav1.Condition{
		Type: bootstrapv1.HostInstalledCondition, Status: metav1.ConditionTrue, Reason: bootstrapv1.HostInstalledReason,
		LastTransitionTime: metav1.Now(),
	})
	w.Expect(w.Status().Update(t.Context(), config)).To(Succeed())
	machine := read(w, "m", &clusterv1.Machine{})
	w.change(machine, func() { machine.Status.NodeRef.Name = "rack1-u7" })
	made := read(w, fencingOfM, &corev1.Secret{})
	w.change(made, func() { made.OwnerReferences[0].UID = "former" })
	w.restart()
	w.reconcile()
	made = read(w, fencingOfM, &corev1.Secret{})
	w.Expect(metav1.IsControlledBy(made, w.config())).To(BeTrue())
	w.Expect(made.OwnerReferences).To(HaveLen(1))
}

// TestCachedApprovedAgentKeepsNameOfSecret: if a Secret lost its owner in a restore, only the Agent shows
// that the Secret belongs to the Machine.
func TestCachedApprovedAgentKeepsNameOfSecret(t *testing.T) {
	agent := &aiv1beta1.Agent{Spec: aiv1beta1.AgentSpec{
		Approved: true, ClusterDeploymentName: &aiv1beta1.ClusterReference{
			Namespace: namespace,
			Name:      "cp",
		}, FencingCredentialsSecretRef: "m-fencing",
	}}
	NewWithT(t).Expect(informer.TrimAgent(agent).Spec.FencingCredentialsSecretRef).To(Equal("m-fencing"))
}
