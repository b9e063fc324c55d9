package config

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

// nodeReady is what Cluster API says of the Node since the moment.
func (w *world) nodeReady(status metav1.ConditionStatus, since time.Time) {
	w.t.Helper()
	machine := read(w, "m", &clusterv1.Machine{})
	w.change(machine, func() {
		machine.Status.NodeRef.Name = "rack1-u7"
		machine.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineNodeReadyCondition, Status: status, Reason: "Test", LastTransitionTime: metav1.NewTime(since)}}
	})
}

// bootDiscovery is assisted-service when a host of the second day, which is installed, registers once more.
func (w *world) bootDiscovery(at time.Time) {
	w.t.Helper()
	agent := w.agent("a")
	w.change(agent, func() {
		agent.Status.DebugInfo.State = "installing-pending-user-action"
		agent.Status.Conditions = append(agent.Status.Conditions, conditionsv1.Condition{
			Type: aiv1beta1.InstalledCondition, Status: corev1.ConditionFalse, Reason: "InstallationInProgress", LastTransitionTime: metav1.NewTime(at),
		})
	})
}

// TestInstalledWorkerBootsDiscoveryAgain: the service leaves such an Agent as it is when the Node is back.
func TestInstalledWorkerBootsDiscoveryAgain(t *testing.T) {
	again := func(t *testing.T) (*world, time.Time) {
		t.Helper()
		w := installing(t)
		w.enter("a", "added-to-existing-cluster")
		w.reconcile()
		w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
		began := time.Now().Add(time.Minute).Truncate(time.Second) // later than what is recorded
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
	t.Run("until nobody missed its Node", func(t *testing.T) {
		w, began := again(t)
		w.Expect(w.reconcile().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", nodeNoticed)))
		w.clock = began.Add(nodeNoticed)
		w.reconcile()
		w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
	})
	t.Run("a later restart of the Node is none", func(t *testing.T) {
		w := installing(t)
		w.enter("a", "added-to-existing-cluster")
		w.reconcile()
		w.bootDiscovery(time.Now().Add(-time.Hour)) // what is recorded as True is later
		w.nodeReady(metav1.ConditionUnknown, time.Now())
		w.reconcile()
		w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
	})
}

func TestInstalledHostIsNeverInstalledAgain(t *testing.T) {
	for name, installed := range map[string]func(w *world){
		"its Node is known": func(w *world) {
			machine := read(w, "m", &clusterv1.Machine{})
			w.change(machine, func() { machine.Status.NodeRef.Name = "rack1-u7" })
		},
		"it has a providerID, which Metal3 sets from the Node": func(w *world) {
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
			w.Expect(w.agent("a").Spec).To(And(HaveField("Approved", BeFalse()), HaveField("ClusterDeploymentName", BeNil()), HaveField("Role", BeEmpty())), "the Agent is told nothing")
		})
	}
}

// TestMovedMachine is the world after clusterctl move: no status, no InfraEnv, a Machine that runs.
func TestMovedMachine(t *testing.T) {
	objects := lab()
	machine, _ := objects["machine"].(*clusterv1.Machine)
	machine.Spec.Bootstrap.DataSecretName = ptr.To("m")
	machine.Status.NodeRef.Name = "rack1-u7"
	w := newWorld(t, values(objects)...)
	w.reconcile()
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
	w.Expect(w.config().Status.DataSecretName).To(Equal("m"), "the data secret is restored")
	w.Expect(w.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "m"}, &aiv1beta1.InfraEnv{})).To(MatchError(apierrors.IsNotFound, "not found"), "no InfraEnv is made for a host that is installed")
}
