package hostconfig

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// nodeReady sets Cluster API's condition of the Node since the moment.
func (w *world) nodeReady(status metav1.ConditionStatus, since time.Time) {
	w.t.Helper()
	machine := read(w, "m", &clusterv1.Machine{})
	w.change(machine, func() {
		machine.Status.NodeRef.Name = "rack1-u7"
		machine.Status.Conditions = []metav1.Condition{{
			Type: clusterv1.MachineNodeReadyCondition, Status: status, Reason: "Test",
			LastTransitionTime: metav1.NewTime(since),
		}}
	})
}

// bootDiscovery registers an installed day-2 host once more, as assisted-service does.
func (w *world) bootDiscovery(at time.Time) {
	w.t.Helper()
	agent := w.agent("a")
	w.change(agent, func() {
		agent.Status.DebugInfo.State = "installing-pending-user-action"
		agent.Status.Conditions = append(agent.Status.Conditions, conditionsv1.Condition{
			Type: aiv1beta1.InstalledCondition, Status: corev1.ConditionFalse, Reason: "InstallationInProgress", LastTransitionTime: metav1.NewTime(
				at),
		})
	})
}

// TestLostStatusIsRestored removes the status at each stage of a host. The next reconciles restore all of it,
// except the times of conditions.
func TestLostStatusIsRestored(t *testing.T) {
	stages := []func(w *world){
		func(w *world) { w.create(discovered("a", "m", bootMAC)) },
		func(w *world) { w.registerWithCluster("a", "known") },
		func(w *world) {
			agent := w.agent("a")
			w.change(agent, func() {
				agent.Status.Progress = aiv1beta1.HostProgressInfo{
					CurrentStage:   aiv1beta1.HostStageWritingImageToDisk,
					StageStartTime: ptr.To(metav1.NewTime(w.clock.Truncate(time.Second))), InstallationPercentage: 40,
				}
			})
			w.enter("a", "installing-in-progress")
		},
		func(w *world) {
			agent := w.agent("a")
			w.change(agent, func() {
				agent.Status.Progress.CurrentStage, agent.Status.Progress.InstallationPercentage = aiv1beta1.HostStageDone, 100
			})
			w.enter("a", "installed")
		},
		func(w *world) { w.nodeReady(metav1.ConditionTrue, w.clock.Add(-time.Minute)) },
	}
	w := booted(t)
	settle := func() bootstrapv1.OpenshiftAssistedConfigStatus {
		w.t.Helper()
		for range 2 {
			w.clock = w.clock.Add(reconcile.DeferralPeriod)
			w.reconcile()
		}
		status := *w.config().Status.DeepCopy()
		for i := range status.Conditions {
			status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
		return status
	}
	machine := read(w, "m", &clusterv1.Machine{})
	w.change(machine, func() { machine.Spec.Bootstrap.DataSecretName = ptr.To("m") }) // as Cluster API does
	for i := -1; i < len(stages); i++ {
		if i >= 0 {
			stages[i](w)
		}
		before := settle()
		w.Expect(before.BootMode).To(Equal(bootstrapv1.BootModeLiveISO), "stage %d", i)
		config := w.config()
		config.Status = bootstrapv1.OpenshiftAssistedConfigStatus{}
		w.Expect(w.Status().Update(t.Context(), config)).To(Succeed())
		w.restart()
		w.Expect(settle()).To(Equal(before), "stage %d", i)
	}
	w.Expect(w.config().Status.InstallationPercentage).To(HaveValue(BeEquivalentTo(100)))
}

// TestInstalledWorkerBootsDiscoveryAgain: assisted-service does not change such an Agent when the Node is
// Ready again.
func TestInstalledWorkerBootsDiscoveryAgain(t *testing.T) {
	again := func(t *testing.T) (*world, time.Time) {
		t.Helper()
		w := installing(t)
		w.enter("a", "added-to-existing-cluster")
		w.reconcile()
		w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
		began := time.Now().Add(time.Minute).Truncate(time.Second) // later than the recorded time
		w.clock = began
		w.nodeReady(metav1.ConditionTrue, began.Add(-time.Hour))
		w.bootDiscovery(began)
		w.reconcile()
		w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.HostBootedDiscoveryAgainReason)
		w.wants(bootstrapv1.HostInstalledCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
		return w, began
	}
	t.Run("until its Node is Ready again", func(t *testing.T) {
		w, began := again(t)
		w.nodeReady(metav1.ConditionUnknown, began.Add(time.Minute))
		w.reconcile()
		w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.HostBootedDiscoveryAgainReason)
		w.nodeReady(metav1.ConditionTrue, began.Add(5*time.Minute))
		w.reconcile()
		w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
	})
	t.Run("until its Node has not been reported missing for a while", func(t *testing.T) {
		w, began := again(t)
		w.Expect(w.reconcile().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", nodeNoticed)))
		w.clock = began.Add(nodeNoticed)
		w.reconcile()
		w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
	})
	t.Run("also while its config has no Machine", func(t *testing.T) {
		w, _ := again(t)
		config := w.config()
		w.change(config, func() { config.OwnerReferences = nil })
		w.reconcile()
		w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.HostBootedDiscoveryAgainReason)
	})
	t.Run("a later restart of the Node is none", func(t *testing.T) {
		w := installing(t)
		w.enter("a", "added-to-existing-cluster")
		w.reconcile()
		w.bootDiscovery(time.Now().Add(-time.Hour)) // the recorded time of True is later
		w.nodeReady(metav1.ConditionUnknown, time.Now())
		w.reconcile()
		w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
	})
}

func TestInstalledHostIsNeverInstalledAgain(t *testing.T) {
	for name, installed := range map[string]func(w *world){
		"the Node is known": func(w *world) {
			machine := read(w, "m", &clusterv1.Machine{})
			w.change(machine, func() { machine.Status.NodeRef.Name = "rack1-u7" })
		},
		"a providerID, which Metal3 sets from the Node": func(w *world) {
			machine := read(w, "m", &clusterv1.Machine{})
			w.change(machine, func() { machine.Spec.ProviderID = "metal3://lab/rack1-u7/m" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := booted(t)
			installed(w)
			w.create(discovered("a", "m", bootMAC))
			w.reconcile()
			w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.HostBootedDiscoveryAgainReason)
			w.Expect(w.agent("a").Spec).To(And(HaveField("Approved", BeFalse()), HaveField("ClusterDeploymentName", BeNil()),
				HaveField("Role", BeEmpty())), "the spec of the Agent is unchanged")
		})
	}
}

// TestMovedMachine covers a Machine after clusterctl move: no status, no InfraEnv, a running Node.
func TestMovedMachine(t *testing.T) {
	objects := lab()
	machine, _ := objects["machine"].(*clusterv1.Machine)
	machine.Spec.Bootstrap.DataSecretName = ptr.To("m")
	machine.Status.NodeRef.Name = "rack1-u7"
	w := newWorld(t, values(objects)...)
	w.reconcile()
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
	w.Expect(w.config().Status.DataSecretName).To(Equal("m"), "the data secret is restored")
	w.Expect(w.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "m"},
		&aiv1beta1.InfraEnv{})).To(MatchError(apierrors.IsNotFound, "not found"), "no InfraEnv is created for an installed host")
}

// TestWipedStatusOfInstalledHost is restored from its Agent: a status contains only data that can be found
// again.
func TestWipedStatusOfInstalledHost(t *testing.T) {
	w := installedWithNode(t)
	before, spec := w.config().Status, w.agent("a").Spec
	w.wipe()
	w.reconcile()
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
	w.expectStage(aiv1beta1.HostStageDone, stageTime, 100)
	w.Expect(w.config().Status.AgentRef).To(Equal(before.AgentRef))
	w.Expect(w.message(bootstrapv1.HostIdentifiedCondition)).To(Equal("Agent a runs on BareMetalHost lab/rack1-u7"))
	w.Expect(w.agent("a").Spec).To(Equal(spec), "the spec of the Agent is unchanged")

	written := w.writes
	w.restart()
	w.reconcile()
	w.Expect(w.writes).To(Equal(written), "no write without a change")
}

// TestAgentWithoutInstalledHost covers Agents from which a wiped status must not be restored.
func TestAgentWithoutInstalledHost(t *testing.T) {
	for name, change := range map[string]func(w *world, agent *aiv1beta1.Agent){
		"Agent of another host": func(_ *world, agent *aiv1beta1.Agent) {
			agent.Status.Inventory.Interfaces[0].MacAddress = "02:00:00:00:00:66"
		},
		"not installed":                func(_ *world, agent *aiv1beta1.Agent) { agent.Status.DebugInfo.State = "installing-in-progress" },
		"not approved":                 func(_ *world, agent *aiv1beta1.Agent) { agent.Spec.Approved = false },
		"bound to no cluster":          func(_ *world, agent *aiv1beta1.Agent) { agent.Spec.ClusterDeploymentName = nil },
		"bound to another cluster":     func(_ *world, agent *aiv1beta1.Agent) { agent.Spec.ClusterDeploymentName.Name = "other" },
		"the BareMetalHost is deleted": func(w *world, _ *aiv1beta1.Agent) { w.remove(bareMetalHost()) },
		"the Metal3Machine is deleted": func(w *world, _ *aiv1beta1.Agent) { w.remove(w.infraMachine()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := installedWithNode(t)
			w.wipe()
			agent := w.agent("a")
			w.change(agent, func() { change(w, agent) })
			w.reconcile()
			w.wants(bootstrapv1.HostInstalledCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
			w.Expect(w.config().Status).To(And(HaveField("AgentRef", BeNil()), HaveField("InstallationProgress", BeEmpty()),
				HaveField("InstallationStageStartTime", BeNil())))
		})
	}
}

// TestAgentWithLateInstallationTime: an Agent reports the time of the installation later than its state. The
// time is written then, and stays when the Agent no longer reports it.
func TestAgentWithLateInstallationTime(t *testing.T) {
	w := installing(t)
	w.nodeReady(metav1.ConditionTrue, time.Now())
	w.progress("a", "installed", aiv1beta1.HostStageJoined, stageTime, 88)
	w.reconcile()
	w.Expect(w.config().Status.InstallationStageStartTime).To(BeNil())
	w.progress("a", "installed", aiv1beta1.HostStageDone, stageTime, 100)
	w.clock = w.clock.Add(reconcile.DeferralPeriod)
	w.reconcile()
	w.clock = w.clock.Add(reconcile.DeferralPeriod)
	w.reconcile()
	w.expectStage(aiv1beta1.HostStageDone, stageTime, 100)
	w.progress("a", "installed", "", metav1.Time{}, 0)
	w.clock = w.clock.Add(reconcile.DeferralPeriod)
	w.reconcile()
	w.clock = w.clock.Add(reconcile.DeferralPeriod)
	w.reconcile()
	w.expectStage(aiv1beta1.HostStageDone, stageTime, 100)
}

// installedWithNode returns a world in which the host is installed and has its Node.
func installedWithNode(t *testing.T) *world {
	t.Helper()
	w := installing(t)
	w.nodeReady(metav1.ConditionTrue, time.Now())
	w.progress("a", "installed", aiv1beta1.HostStageDone, stageTime, 100)
	w.reconcile()
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
	return w
}

// wipe removes the status while the manager does not run.
func (w *world) wipe() {
	w.t.Helper()
	config := w.config()
	config.Status = bootstrapv1.OpenshiftAssistedConfigStatus{}
	w.Expect(w.Status().Update(w.t.Context(), config)).To(Succeed())
	w.restart()
}
