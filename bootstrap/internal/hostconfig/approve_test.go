package hostconfig

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// TestHostRestoredWithoutHistoryIsNotApproved: the Bare Metal Operator treats it as a new host, although the
// server may be installed.
func TestHostRestoredWithoutHistoryIsNotApproved(t *testing.T) {
	w := booted(t)
	host := read(w, "rack1-u7", bareMetalHost())
	w.change(host, func() { host.Labels = map[string]string{metal3.RestoreLabel: "nightly"} })
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.registerWithCluster("a", "known")
	for range 2 {
		w.reconcile()
		w.restart()
	}
	w.Expect(w.agent("a").Spec.Approved).To(BeFalse())
	w.wants(bootstrapv1.HostApprovedCondition, metav1.ConditionFalse, bootstrapv1.HostRestoredWithoutHistoryReason)

	host = read(w, "rack1-u7", bareMetalHost())
	w.change(host, func() { host.Labels = nil })
	w.reconcile()
	w.Expect(w.agent("a").Spec.Approved).To(BeTrue(), "the user allows to overwrite the disk")
}
