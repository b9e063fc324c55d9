package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/event"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

func TestBlockerOfAHostTriggersReconcile(t *testing.T) {
	g := NewWithT(t)
	before := &clusterv1.Machine{}
	after := before.DeepCopy()
	conditions.Set(after, metav1.Condition{
		Type: clusterv1.MachineBootstrapConfigReadyCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.HostRefusedReason,
	})
	g.Expect(informer.MachineChanges.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(BeTrue(), "also for a worker")
	pending := aiv1beta1.Agent{}
	pending.Status.DebugInfo.State = "insufficient"
	pending.Status.Conditions = []conditionsv1.Condition{
		{Type: aiv1beta1.ValidatedCondition, Status: corev1.ConditionFalse, Message: "No connectivity to the majority of hosts in the cluster"},
	}
	passed := *pending.DeepCopy()
	passed.Status.Conditions[0].Message = "The agent's validations are failing: NTP is not in step"
	g.Expect(informer.AgentChanges.Update(event.UpdateEvent{ObjectOld: &pending, ObjectNew: &passed})).To(BeTrue())
}

func TestUnresponsiveAssistedServiceIsReported(t *testing.T) {
	h := newHub(t, world(nil)...)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.r.writer.Recent = reconcile.NewRecentWrites(h.clock)
	h.reconcile()
	_, install := h.registration()
	install.CreationTimestamp = metav1.NewTime(now.Truncate(time.Second))
	h.Expect(h.Update(t.Context(), install)).To(Succeed())
	now = now.Add(assisted.ResponseTimeout / 2)
	h.Expect(h.reconcile().RequeueAfter).To(BeNumerically("<=", assisted.ResponseTimeout/2), "a deadline cannot be watched")
	h.Expect(
		conditions.GetReason(h.controlPlane(), controlplanev1.InstalledCondition),
	).To(Equal(controlplanev1.WaitingForAssistedServiceReason))
	now = now.Add(assisted.ResponseTimeout)
	h.reconcile()
	c := conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition)
	h.Expect(c.Reason).To(Equal(controlplanev1.AssistedServiceNotRespondingReason))
	h.Expect(c.Message).To(And(ContainSubstring(install.CreationTimestamp.UTC().Format(time.RFC3339)), ContainSubstring("namespace "+lab)))

	h.setState("insufficient", hiveext.ClusterInstallationNotStartedReason, 0)
	h.reconcile()
	h.Expect(conditions.GetReason(h.controlPlane(), controlplanev1.InstalledCondition)).To(Equal(controlplanev1.WaitingForHostsReason))
}

// No control-plane Machine is created until all Machines have an owner of any kind.
func TestOwnerOfRestoredMachineTriggersReconcile(t *testing.T) {
	restored, owned := &clusterv1.Machine{}, &clusterv1.Machine{}
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "Cluster", Name: "cluster1"}}
	g := NewWithT(t)
	g.Expect(informer.MachineChanges.Update(event.UpdateEvent{ObjectOld: restored, ObjectNew: owned})).To(BeTrue())
	g.Expect(informer.MachineChanges.Update(event.UpdateEvent{ObjectOld: owned, ObjectNew: owned})).To(BeFalse())
}
