package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// settled reconciles until all deferred changes are written. It returns the status without the times of its
// conditions.
func (h *hub) settled() controlplanev1.OpenshiftAssistedControlPlaneStatus {
	h.t.Helper()
	for range 3 {
		h.endDeferral()
		h.reconcile()
	}
	status := *h.controlPlane().Status.DeepCopy()
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	return status
}

// The status is removed at each stage of a cluster.
func TestLostStatusIsRestored(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	for stage, happen := range []func(){
		func() {},
		func() { h.setState("installing", "", 40) },
		func() { h.giveKubeconfig("assisted-service"); h.setState("finalizing", "", 80) },
		h.install,
	} {
		happen()
		before := h.settled()
		cp := h.controlPlane()
		cp.Status = controlplanev1.OpenshiftAssistedControlPlaneStatus{}
		h.Expect(h.Status().Update(t.Context(), cp)).To(Succeed())
		h.Expect(h.settled()).To(Equal(before), "stage %d", stage)
	}
	h.Expect(h.controlPlane().Status.Version).NotTo(BeEmpty())
}
