package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

func TestDeletedMachineThatWasTakenOutIsReported(t *testing.T) {
	h := newInstalledHub(t)
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace:   lab,
		Name:        "former",
		Finalizers:  []string{clusterv1.MachineFinalizer},
		Annotations: map[string]string{controlplanev1.EtcdMemberHookAnnotation: ""},
	}, Spec: clusterv1.MachineSpec{ClusterName: "cluster1"}}
	h.Expect(h.Create(t.Context(), m)).To(Succeed())
	h.reconcile()
	h.Expect(
		conditions.GetReason(h.controlPlane(), controlplanev1.HostsReleasingCondition),
	).NotTo(Equal(controlplanev1.ControlPlaneLabelsMissingReason), "the Machine is not being deleted")

	h.Expect(h.Delete(t.Context(), m)).To(Succeed())
	h.reconcile()
	h.Expect(h.held()).To(ContainElement(m.Name))
	h.Expect(h.etcds.inspections).To(BeZero())
	c := conditions.Get(h.controlPlane(), controlplanev1.HostsReleasingCondition)
	h.Expect(c.Status).To(Equal(metav1.ConditionTrue))
	h.Expect(c.Reason).To(Equal(controlplanev1.ControlPlaneLabelsMissingReason))
	h.Expect(c.Message).To(
		And(ContainSubstring("Machine "+m.Name+" is not touched"), ContainSubstring("the annotation "+controlplanev1.EtcdMemberHookAnnotation)),
	)

	h.get(m.Name, m)
	m.Annotations = nil
	h.Expect(h.Update(t.Context(), m)).To(Succeed())
	h.reconcile()
	h.endDeferral()
	h.reconcile()
	h.Expect(
		conditions.GetReason(h.controlPlane(), controlplanev1.HostsReleasingCondition),
	).NotTo(Equal(controlplanev1.ControlPlaneLabelsMissingReason))
}

// Only the slot of that Machine stays empty.
func TestOtherMachinesAreCreatedAlthoughOneWasTakenOut(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	out, deleted := h.machines()[0], h.machines()[2]
	out.OwnerReferences, out.Labels = clusterOwner(), map[string]string{clusterv1.ClusterNameLabel: "cluster1"}
	h.Expect(h.Update(t.Context(), &out)).To(Succeed())
	h.Expect(h.Delete(t.Context(), &deleted)).To(Succeed())
	h.reconcile()
	h.Expect(h.names()).To(HaveLen(3))
	h.get(out.Name, &out)
	h.Expect(out.OwnerReferences).To(Equal(clusterOwner()))
}

// Its host may be a member of etcd. No other Machine is created under its name, and this needs no inspection
// of etcd.
func TestMachineThatWasTakenOutIsReported(t *testing.T) {
	h := newInstalledHub(t)
	m := h.machines()[0]
	owners, labels := m.OwnerReferences, m.Labels
	m.OwnerReferences, m.Labels = clusterOwner(), map[string]string{clusterv1.ClusterNameLabel: "cluster1"}
	h.Expect(h.Update(t.Context(), &m)).To(Succeed())
	for range 3 {
		h.endDeferral()
		h.reconcile()
	}
	h.Expect(h.etcds.inspections).To(BeZero())
	h.Expect(h.machines()).To(HaveLen(3))
	h.get(m.Name, &m)
	h.Expect(m.OwnerReferences).To(Equal(clusterOwner()))
	for _, condition := range []string{controlplanev1.MachinesCreatedCondition, controlplanev1.ScalingUpCondition} {
		h.Expect(conditions.GetMessage(h.controlPlane(), condition)).To(
			ContainSubstring("Machine "+m.Name+" was removed from the control plane"), condition,
		)
	}

	m.OwnerReferences, m.Labels = owners, labels
	h.Expect(h.Update(t.Context(), &m)).To(Succeed())
	h.endDeferral()
	h.reconcile()
	h.Expect(conditions.IsTrue(h.controlPlane(), controlplanev1.MachinesCreatedCondition)).To(BeTrue())
}
