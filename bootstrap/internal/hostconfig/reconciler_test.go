package hostconfig

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// TestHostIsInstalled covers all steps of a host with a live ISO.
func TestHostIsInstalled(t *testing.T) {
	w := newWorld(t, values(lab())...)

	w.reconcile()
	infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
	w.Expect(infraEnv.Spec.ClusterRef).To(BeNil())
	w.Expect(infraEnv.OwnerReferences).To(BeEmpty())
	w.Expect(infraEnv.Spec.OSImageVersion).To(Equal("4.19"))
	w.Expect(infraEnv.Spec.PullSecretRef.Name).To(Equal("pull-secret"))
	w.Expect(w.config().Status.DataSecretName).To(BeEmpty(), "nothing is handed out without an image")
	w.Expect(w.infraMachine()).NotTo(bootFrom(isoURL), "nothing is handed out without an image")

	w.makeImage()
	w.reconcile()
	w.Expect(w.infraMachine()).To(bootFrom(isoURL))
	secret := read(w, "m", &corev1.Secret{})
	w.Expect(secret.Type).To(Equal(clusterv1.ClusterSecretType))
	w.Expect(secret.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"))
	w.Expect(metav1.GetControllerOf(secret)).To(HaveField("UID", w.config().UID))
	w.Expect(string(secret.Data["value"])).To(Equal(`{"ignition":{"version":"3.1.0"}}`))
	status := w.config().Status
	w.Expect(status.DataSecretName).To(Equal("m"))
	w.Expect(status.Initialization.DataSecretCreated).To(HaveValue(BeTrue()))
	w.Expect(status.BootMode).To(Equal(bootstrapv1.BootModeLiveISO))
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.NoHostFitsReason)

	w.create(bareMetalHost())
	w.reconcile()
	mute := discovered("a", "m", strings.ToUpper(bootMAC))
	mute.Status = aiv1beta1.AgentStatus{}
	w.create(mute)
	w.reconcile()
	w.change(mute, func() { mute.Status = discovered("a", "m", strings.ToUpper(bootMAC)).Status })
	w.reconcile()
	agent := w.agent("a")
	w.Expect(agent.Spec.ClusterDeploymentName).NotTo(BeNil())
	w.Expect(agent.Spec.Approved).To(BeFalse())
	w.Expect(agent.Spec.Hostname).To(Equal("rack1-u7"))
	w.Expect(agent.Spec.Role).To(BeEquivalentTo("worker"))
	w.Expect(agent.Spec.NodeLabels).To(HaveKeyWithValue("metal3.io/uuid", "bmh-uid"))
	w.Expect(agent.Spec.IgnitionConfigOverrides).NotTo(BeEmpty())
	w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.HostBindingReason)

	w.registerWithCluster("a", "insufficient")
	w.reconcile()
	w.registerWithCluster("a", "known")
	w.reconcile()
	w.Expect(w.agent("a").Spec.Approved).To(BeTrue(), "approved")
	w.lasts(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForInstallationReason)

	for state, reason := range map[string]string{
		"installing":             bootstrapv1.HostInstallingReason,
		"installing-in-progress": bootstrapv1.HostInstallingReason,
	} {
		w.enter("a", state)
		w.reconcile()
		w.lasts(bootstrapv1.HostInstalledCondition, metav1.ConditionFalse, reason)
	}
	w.enter("a", "installed")
	w.reconcile()
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)

	before := w.writes
	for range 3 {
		w.reconcile()
	}
	w.Expect(w.writes).To(Equal(before), "no write after the installation")
	// One write each: finalizer, InfraEnv, boot image, bootstrap data, protection of the Machine, binding,
	// approval. Five writes of the status: data handed out, host identified, waiting for the installation,
	// installing, installed.
	w.Expect(before).To(Equal(12), "writing requests for one host")
	w.Expect(w.reports).To(Equal(5), "status writes among them")
	var events []string
	for e := w.event(); e != ""; e = w.event() {
		events = append(events, strings.Fields(e)[1])
	}
	w.Expect(events).To(Equal([]string{"HostApproved", "HostInstalled"}))
}

// registerWithCluster sets the state of an Agent that registered with the cluster to which it is bound.
func (w *world) registerWithCluster(name, state string) {
	w.t.Helper()
	agent := w.agent(name)
	w.change(agent, func() {
		agent.Status.DebugInfo.State = state
		agent.Status.Role = agent.Spec.Role
		agent.Status.Conditions = []conditionsv1.Condition{
			{Type: aiv1beta1.SpecSyncedCondition, Status: corev1.ConditionTrue, Reason: "SyncOK"},
			{Type: aiv1beta1.BoundCondition, Status: corev1.ConditionTrue, Reason: "Bound"},
		}
	})
}

func (w *world) enter(name, state string) {
	w.t.Helper()
	agent := w.agent(name)
	w.change(agent, func() { agent.Status.DebugInfo.State = state })
}

// booted returns a world in which the bootstrap data is handed out and the host is chosen.
func booted(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := newWorld(t, append(values(lab()), objects...)...)
	w.reconcile()
	w.makeImage()
	w.reconcile()
	w.create(bareMetalHost())
	return w
}

// TestNodeBeforeEndOfInstallation: a Node registers while assisted-service still installs its host.
func TestNodeBeforeEndOfInstallation(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.registerWithCluster("a", "known")
	w.reconcile()
	w.enter("a", "installing-in-progress")
	machine := read(w, "m", &clusterv1.Machine{})
	w.change(machine, func() { machine.Status.NodeRef.Name = "rack1-u7" })
	w.remove(read(w, "rack1-u7", bareMetalHost()))
	w.reconcile()
	w.lasts(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.HostInstallingReason)
	w.enter("a", "installed")
	w.reconcile()
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
	w.Expect(w.config().Status.InstallationProgress).To(Equal("Done"))
}

func TestWaitsForDependencies(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(objects map[string]client.Object)
		reason string
	}{
		"no Machine": {func(o map[string]client.Object) { delete(o, "machine") }, bootstrapv1.WaitingForMachineReason},
		"no Cluster": {
			func(o map[string]client.Object) { delete(o, "cluster") },
			bootstrapv1.WaitingForClusterInfrastructureReason,
		},
		"no ClusterDeployment": {
			func(o map[string]client.Object) { delete(o, "deployment") },
			bootstrapv1.WaitingForClusterDeploymentReason,
		},
		"no infrastructure machine": {func(o map[string]client.Object) { delete(o, "metal3") }, bootstrapv1.WaitingForInfraMachineReason},
		"no pull secret":            {func(o map[string]client.Object) { delete(o, "pullSecret") }, bootstrapv1.PullSecretMissingReason},
		"a foreign InfraEnv": {func(o map[string]client.Object) {
			o["ie"] = &aiv1beta1.InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}}
		}, bootstrapv1.InfraEnvNotOursReason},
		"an invalid override": {func(o map[string]client.Object) {
			o["config"].SetAnnotations(map[string]string{bootstrapv1.DiscoveryIgnitionOverrideAnnotation: "{"})
		}, bootstrapv1.InvalidConfigurationReason},
		"a MachinePool": {func(o map[string]client.Object) {
			delete(o, "machine")
			o["config"].SetOwnerReferences([]metav1.OwnerReference{{Kind: "MachinePool", Name: "p", APIVersion: "v1", UID: "u"}})
		}, bootstrapv1.MachinePoolNotSupportedReason},
	} {
		t.Run(name, func(t *testing.T) {
			objects := lab()
			tc.change(objects)
			w := newWorld(t, values(objects)...)
			w.reconcile()
			w.lasts(bootstrapv1.ReadyCondition, metav1.ConditionFalse, tc.reason)
			before := w.writes
			w.reconcile()
			w.Expect(w.writes).To(Equal(before), "a wait writes nothing")
		})
	}
}

func TestPausedWritesOnlyItsCondition(t *testing.T) {
	objects := lab()
	cluster, _ := objects["cluster"].(*clusterv1.Cluster)
	cluster.Spec.Paused = ptr.To(true)
	w := newWorld(t, values(objects)...)
	w.reconcile()
	w.wants(clusterv1.PausedCondition, metav1.ConditionTrue, clusterv1.PausedReason)
	w.Expect(w.writes).To(Equal(1))
	w.Expect(w.config().Finalizers).To(BeEmpty())
	w.Expect(w.config().Status.Conditions).To(HaveLen(1))
}

// TestPausedConfigDoesNothingAfterAnyTime: a pause outlasts each timer, independent of the blocker of the
// config.
func TestPausedConfigDoesNothingAfterAnyTime(t *testing.T) {
	for situation, begin := range map[string]func(*testing.T) *world{
		"waits for its image": func(t *testing.T) *world { t.Helper(); return newWorld(t, values(lab())...) },
		"waits for its host": func(t *testing.T) *world {
			t.Helper()
			w := newWorld(t, values(lab())...)
			w.reconcile()
			w.makeImage()
			return w
		},
	} {
		t.Run(situation, func(t *testing.T) {
			w := begin(t)
			w.reconcile()
			cluster := read(w, "c", &clusterv1.Cluster{})
			w.change(cluster, func() { cluster.Spec.Paused = ptr.To(true) })
			w.reconcile()
			w.wants(clusterv1.PausedCondition, metav1.ConditionTrue, clusterv1.PausedReason)
			writes, paused := w.writes, time.Now()
			for _, since := range []time.Duration{
				time.Second, reconcile.DeferralPeriod, time.Minute, time.Hour, 24 * time.Hour,
				400 * 24 * time.Hour,
			} {
				w.clock = paused.Add(since)
				w.Expect(w.reconcile().RequeueAfter).To(BeZero(), "after %s", since)
			}
			w.Expect(w.writes).To(Equal(writes))
		})
	}
}

func (w *world) setState(obj client.Object, state string) {
	w.t.Helper()
	install := installOf(w, obj)
	w.change(install, func() { install.Status.DebugInfo.State = state })
}
