package hostconfig

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

const (
	hidden       = "hunter2"
	fencingOfM   = "m-fencing-credentials"
	bmcSecret    = "rack1-u7-bmc"
	usersFencing = "rack1-u7-fencing"
)

// credentials is a Secret with user name and password, and what else there is.
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

// twoNodes is a world in which the Machine is one of the two nodes of a cluster, and an Agent of its host registered.
// change is done to the BareMetalHost.
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
	host.Spec.BMC = metal3.BMC{Address: "redfish-virtualmedia://root:" + hidden + "@bmc-7.example/redfish/v1/Systems/1", CredentialsName: bmcSecret, DisableCertificateVerification: true}
	if change != nil {
		change(host)
	}
	w.create(host, discovered("a", "m", bootMAC))
	return w
}

// fencing is the content of the Secret that was made, with its keys.
func (w *world) fencing() map[string]string {
	w.t.Helper()
	content := map[string]string{}
	for key, value := range read(w, fencingOfM, &corev1.Secret{}).Data {
		content[key] = string(value)
	}
	return content
}

// expectNothingLeaked looks for the password in all that people read.
func (w *world) expectNothingLeaked() {
	w.t.Helper()
	for _, c := range w.config().Status.Conditions {
		w.Expect(c.Message).NotTo(ContainSubstring(hidden), c.Type)
	}
	for told := w.event(); told != ""; told = w.event() {
		w.Expect(told).NotTo(ContainSubstring(hidden))
	}
	for key, value := range w.agent("a").Annotations {
		w.Expect(key + value).NotTo(ContainSubstring(hidden))
	}
}

func TestTheBMCOfAFencedHostIsTold(t *testing.T) {
	w := twoNodes(t, nil)
	w.create(credentials(bmcSecret, nil))
	w.reconcile()
	w.Expect(w.fencing()).To(Equal(map[string]string{
		"address": "redfish+https://bmc-7.example:443/redfish/v1/Systems/1", "username": "root-" + hidden, "password": hidden, "certificateVerification": "Disabled",
	}))
	made := read(w, fencingOfM, &corev1.Secret{})
	w.Expect(metav1.IsControlledBy(made, w.config())).To(BeTrue(), "it is deleted, and moved, with the config")
	w.Expect(made.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"))
	agent := w.agent("a")
	w.Expect(agent.Spec.ClusterDeploymentName).NotTo(BeNil())
	w.Expect(agent.Spec.FencingCredentialsSecretRef).To(Equal(fencingOfM))

	w.writes, w.reports = 0, 0
	w.reconcile()
	w.Expect(w.writes-w.reports).To(BeZero(), "nothing changed")
	w.registerWithCluster("a", "known")
	w.reconcile()
	w.Expect(w.agent("a").Spec.Approved).To(BeTrue())
	w.expectNothingLeaked()
}

func TestOtherCredentialsReachAssistedServiceUntilTheHostIsApproved(t *testing.T) {
	w := twoNodes(t, nil)
	bmc := credentials(bmcSecret, nil)
	w.create(bmc)
	w.reconcile()
	before := w.agent("a")
	w.change(bmc, func() { bmc.Data["password"] = []byte("other") })
	w.Expect(w.reconciler.ofSecret(t.Context(), bmc)).To(ContainElement(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.config())}), "it is news")
	w.reconcile()
	w.Expect(w.fencing()).To(HaveKeyWithValue("password", "other"))
	w.Expect(w.agent("a").Annotations[desired.FencingAnnotation]).NotTo(Equal(before.Annotations[desired.FencingAnnotation]), "assisted-service looks again when the Agent changes")

	w.remove(read(w, fencingOfM, &corev1.Secret{}))
	w.reconcile()
	w.Expect(w.fencing()).To(HaveKeyWithValue("password", "other"), "it is there as long as the Agent names it")

	w.registerWithCluster("a", "known")
	w.reconcile()
	w.change(bmc, func() { bmc.Data["password"] = []byte("later") })
	w.Expect(w.agent("a").Spec.Approved).To(BeTrue())
	w.reconcile()
	w.Expect(w.fencing()).To(HaveKeyWithValue("password", "other"), "assisted-service ignores what comes later")
	w.Expect(w.reconciler.ofSecret(t.Context(), bmc)).To(BeEmpty())
}

func TestWhatAnApprovedHostIsFencedByStays(t *testing.T) {
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
	w.Expect(metav1.IsControlledBy(read(w, fencingOfM, &corev1.Secret{}), w.config())).To(BeTrue(), "else the garbage collector takes it")

	w.remove(restored)
	w.Expect(w.reconciler.ofSecret(t.Context(), restored)).To(ContainElement(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.config())}), "it is news")
	w.reconcile()
	w.Expect(w.fencing()).To(HaveKeyWithValue("password", hidden), "assisted-service reads it before it takes note of the approval")

	w.remove(read(w, fencingOfM, &corev1.Secret{}))
	w.remove(read(w, bmcSecret, &corev1.Secret{}))
	w.reconcile()
	w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.HostBindingReason) // which is up to assisted-service
}

func TestTheUsersOwnCredentialsComeFirst(t *testing.T) {
	w := twoNodes(t, func(host *metal3.Host) {
		host.Annotations = map[string]string{metal3.FencingCredentialsAnnotation: usersFencing}
	})
	w.create(credentials(bmcSecret, nil), credentials(usersFencing, map[string]string{"address": "https://fence.example:8443/redfish/v1/Systems/7", "certificateVerification": "Enabled"}))
	w.reconcile()
	w.Expect(w.agent("a").Spec.FencingCredentialsSecretRef).To(Equal(usersFencing))
	w.Expect(apierrors.IsNotFound(w.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: fencingOfM}, &corev1.Secret{}))).To(BeTrue(), "no other is made")
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
		"no such Secret":                   {nil, credentials("other", nil), "Secret rack1-u7-bmc with the credentials of the BMC of BareMetalHost rack1-u7 does not exist: create it"},
		"no password":                      {nil, without(credentials(bmcSecret, nil), "password"), "has no password: add it"},
		"no user":                          {nil, without(credentials(bmcSecret, nil), "username"), "has no username: add it"},
		"no Secret is named":               {func(host *metal3.Host) { host.Spec.BMC.CredentialsName = "" }, credentials("other", nil), "has no spec.bmc.credentialsName"},
		"the user's is missing":            {named, credentials(bmcSecret, nil), "Secret rack1-u7-fencing with the credentials of the BMC of BareMetalHost rack1-u7 does not exist"},
		"the user's has no address":        {named, credentials(usersFencing, map[string]string{"certificateVerification": verification}), "the key address must be like"},
		"the user's has no port":           {named, credentials(usersFencing, map[string]string{"address": "https://fence.example/redfish/v1/Systems/7", "certificateVerification": verification}), "with port and path"},
		"the user's has no password":       {named, without(credentials(usersFencing, map[string]string{"address": address, "certificateVerification": verification}), "password"), "has no key password: add it"},
		"the user's says nothing of certs": {named, credentials(usersFencing, map[string]string{"address": address}), "the key certificateVerification must be Enabled or Disabled"},
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

func TestASecretOfSomebodyElseIsLeftAlone(t *testing.T) {
	w := twoNodes(t, nil)
	w.create(credentials(bmcSecret, nil), credentials(fencingOfM, nil))
	w.reconcile()
	w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.FencingCredentialsUnusableReason)
	w.Expect(w.fencing()).NotTo(HaveKey("address"))
	w.remove(read(w, fencingOfM, &corev1.Secret{}))
	w.reconcile()
	w.Expect(w.fencing()).To(HaveKey("address"))
}

// TestFencingSecretThatTheCacheDoesNotShowYet: the first write is forced and would overwrite it.
func TestFencingSecretThatTheCacheDoesNotShowYet(t *testing.T) {
	w := twoNodes(t, nil)
	w.create(credentials(bmcSecret, nil), credentials(fencingOfM, nil))
	theirs := read(w, fencingOfM, &corev1.Secret{})
	w.metadata.Reader = lacking{w.metadata.Reader, fencingOfM}
	w.reconcile()
	w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.FencingCredentialsUnusableReason)
	w.Expect(read(w, fencingOfM, &corev1.Secret{})).To(Equal(theirs))
}

func TestNobodyElseIsFenced(t *testing.T) {
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
		w.Expect(meta.FindStatusCondition(w.config().Status.Conditions, bootstrapv1.HostBoundCondition).Message).To(ContainSubstring("a two-node cluster with fencing has no workers"))
		w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil())
	}
}

// A cluster with an arbiter that was moved to a hub whose AgentClusterInstalls have no field for arbiters looks there
// like one of two nodes.
func TestWorkersOfAClusterWithAnArbiterThatIsNotCounted(t *testing.T) {
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

func TestAnAssistedServiceWithoutFencing(t *testing.T) {
	t.Run("its Agents have no such field", func(t *testing.T) {
		w := twoNodes(t, nil)
		bmc := credentials(bmcSecret, nil)
		w.create(bmc)
		w.reconcile()
		w.refusal = errors.New("failed to create typed patch object (lab/a; agent-install.openshift.io/v1beta1, Kind=Agent): .spec.fencingCredentialsSecretRef: field not declared in schema")
		agent := w.agent("a")
		w.change(agent, func() { agent.Spec = aiv1beta1.AgentSpec{} })
		result := w.reconcile()
		w.Expect(result.RequeueAfter).To(BeNumerically("<=", writer.RefusedRetry))
		w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.InvalidConfigurationReason)
		w.Expect(meta.FindStatusCondition(w.config().Status.Conditions, bootstrapv1.HostBoundCondition).Message).To(ContainSubstring("its Agents have no spec.fencingCredentialsSecretRef"))
	})
	t.Run("it was started without", func(t *testing.T) {
		w := twoNodes(t, nil)
		w.create(credentials(bmcSecret, nil))
		w.reconcile()
		w.registerWithCluster("a", "known")
		agent := w.agent("a")
		w.change(agent, func() {
			agent.Status.Conditions[0] = conditionsv1.Condition{Type: aiv1beta1.SpecSyncedCondition, Status: corev1.ConditionFalse, Reason: "InputError", Message: "TNF clusters support is disabled, cannot set"}
		})
		w.reconcile()
		w.wants(bootstrapv1.HostApprovedCondition, metav1.ConditionFalse, bootstrapv1.InvalidConfigurationReason)
		message := meta.FindStatusCondition(w.config().Status.Conditions, bootstrapv1.HostApprovedCondition).Message
		w.Expect(strings.HasSuffix(message, "need an assisted-service that is started with TNF_CLUSTERS_SUPPORT=true")).To(BeTrue(), message)
		w.Expect(w.agent("a").Spec.Approved).To(BeFalse())
	})
}

// The password of a BMC is copied for as long as assisted-service may read it.
func TestTheCredentialsAreTakenOutWhenTheHostIsInstalled(t *testing.T) {
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
	w.Expect(metav1.IsControlledBy(retired, w.config())).To(BeTrue(), "it goes with the config")
	writes := w.writes
	w.restart()
	w.reconcile()
	w.Expect(w.writes).To(Equal(writes))
}

// The password of a BMC that nothing needs is not kept until the config is deleted.
func TestTheCredentialsAreTakenOutWhenTheUserNamesOthers(t *testing.T) {
	w := twoNodes(t, nil)
	w.create(credentials(bmcSecret, nil), credentials(usersFencing, map[string]string{"address": "https://fence.example:8443/redfish/v1/Systems/7", "certificateVerification": "Enabled"}))
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
	w.Expect(w.fencing()).To(HaveKeyWithValue("password", hidden), "it is needed again")
	w.Expect(w.agent("a").Spec.FencingCredentialsSecretRef).To(Equal(fencingOfM))
}

// A Secret that belongs to another object is none of ours, whatever its annotation says.
func TestCredentialsOfAnotherObjectAreLeftAlone(t *testing.T) {
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

// TestTheCredentialsGoWithTheRestoredConfig is a restore from a backup: the config has another UID, and the garbage
// collector takes what belongs to the former one.
func TestTheCredentialsGoWithTheRestoredConfig(t *testing.T) {
	w := twoNodes(t, nil)
	w.create(credentials(bmcSecret, nil))
	w.reconcile()
	w.registerWithCluster("a", "known")
	w.reconcile()
	config := w.config()
	config.Status.Conditions = append(config.Status.Conditions, metav1.Condition{
		Type: bootstrapv1.HostInstalledCondition, Status: metav1.ConditionTrue, Reason: bootstrapv1.HostInstalledReason, LastTransitionTime: metav1.Now(),
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

// TestTheCacheKeepsWhichSecretAnApprovedAgentNames: of a Secret that lost its owner in a restore only the Agent shows
// that it is the Machine's.
func TestTheCacheKeepsWhichSecretAnApprovedAgentNames(t *testing.T) {
	agent := &aiv1beta1.Agent{Spec: aiv1beta1.AgentSpec{
		Approved: true, ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: namespace, Name: "cp"}, FencingCredentialsSecretRef: "m-fencing",
	}}
	NewWithT(t).Expect(informer.TrimAgent(agent).Spec.FencingCredentialsSecretRef).To(Equal("m-fencing"))
}
