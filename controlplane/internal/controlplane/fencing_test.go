package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/move"
)

// newTwoNodeHub returns a hub with an installed cluster of two nodes with fencing.
func newTwoNodeHub(t *testing.T) *hub {
	t.Helper()
	h := newInstalledHubOf(t, func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Replicas, cp.Spec.DistributionVersion = ptr.To[int32](2), "v4.22.1"
		cp.Spec.Fencing = &controlplanev1.FencingSpec{CredentialsFrom: controlplanev1.FencingCredentialsFromBareMetalHosts}
	})
	h.etcds.Topology = configv1.DualReplicaTopologyMode
	h.keepMachines()
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(2))
	h.etcds.inspections = 0
	return h
}

// expectRefusedBySpec checks that etcd was neither inspected nor changed, and that the refusal names the
// field of the spec.
func (h *hub) expectRefusedBySpec(condition string) {
	h.t.Helper()
	h.Expect(h.etcds.inspections).To(BeZero(), "the spec is sufficient evidence")
	h.Expect(h.etcds.calls).To(BeEmpty())
	h.Expect(conditions.Get(h.controlPlane(), condition)).To(And(HaveField("Status", metav1.ConditionTrue),
		HaveField("Reason", controlplanev1.EtcdTopologyNotSupportedReason),
		HaveField("Message", ContainSubstring("two nodes with fencing (spec.fencing)"))))
}

func TestTwoNodesAreInstalledWithoutArbiter(t *testing.T) {
	h := newTwoNodeHub(t)
	aci := &hiveext.AgentClusterInstall{}
	h.get("c1", aci)
	h.Expect(aci.Spec.ProvisionRequirements).To(Equal(hiveext.ProvisionRequirements{ControlPlaneAgents: 2}))
}

func TestHostOfTwoNodeClusterIsNeverReleased(t *testing.T) {
	h := newTwoNodeHub(t)
	name := h.deleteMachine(0)
	h.reconcile()
	h.endDeferral()
	h.reconcile()
	h.expectRefusedBySpec(controlplanev1.HostsReleasingCondition)
	m := &clusterv1.Machine{}
	h.get(name, m)
	h.Expect(m.Annotations).To(HaveKey(controlplanev1.EtcdMemberHookAnnotation))
	h.Expect(h.controlPlane().Annotations).NotTo(
		HaveKey(clusterctlv1.BlockMoveAnnotation), "the Machine stays on the hub to which the cluster is moved",
	)

	h.Expect(h.r.hooks.Drop(t.Context(), m)).To(Succeed()) // as a user does by hand
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(clusterctlv1.BlockMoveAnnotation, move.RemovingHosts))
}

func TestMachineOfTwoNodeClusterIsNotReplaced(t *testing.T) {
	h := newTwoNodeHub(t)
	h.finishMachine(h.deleteMachine(0)) // a user removed our hook
	h.reconcile()
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(1))
	h.expectRefusedBySpec(controlplanev1.ScalingUpCondition)
}

func TestMachineOfTwoNodeClusterIsNotRemediated(t *testing.T) {
	h := newTwoNodeHub(t)
	sick := h.makeUnhealthy(0)
	h.reconcile()
	h.Expect(h.deleted()).To(BeEmpty())
	h.Expect(h.reportText(sick.Name)).To(
		And(
			HaveField("Reason", controlplanev1.MachineCannotBeRemediatedReason),
			HaveField("Message", ContainSubstring("fence each other (spec.fencing)")),
		),
	)
	h.Expect(h.etcds.inspections).To(BeZero())
}

func TestSurplusMachineOfTwoNodeClusterStays(t *testing.T) {
	h := newTwoNodeHub(t)
	h.scale(1)
	h.reconcile()
	h.Expect(h.deleted()).To(BeEmpty())
	h.expectRefusedBySpec(controlplanev1.ScalingDownCondition)
}

func TestTwoNodeClusterIsDeletedAsAWhole(t *testing.T) {
	h := newTwoNodeHub(t)
	h.deleteMachine(0)
	h.reconcile()
	cp := h.controlPlane()
	h.Expect(h.Delete(t.Context(), cp)).To(Succeed())
	h.reconcile()
	for _, m := range h.machines() {
		h.Expect(m.Annotations).NotTo(HaveKey(controlplanev1.EtcdMemberHookAnnotation))
	}
	h.Expect(h.etcds.calls).To(BeEmpty())
}
