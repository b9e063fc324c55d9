package hostconfig

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// TestAgentsThatDoNotChangeAreTouched: assisted-service loses a notification if its database does not answer. It
// publishes the Agent again when the Agent changes.
func TestAgentsThatDoNotChangeAreTouched(t *testing.T) {
	for situation, tc := range map[string]struct {
		change  func(*aiv1beta1.Agent)
		touched bool
	}{
		"discovered, without hardware": {
			change:  func(a *aiv1beta1.Agent) { a.Status.Inventory = aiv1beta1.HostInventory{} },
			touched: true,
		},
		"binding": {
			change:  func(a *aiv1beta1.Agent) { a.Status.DebugInfo.State = aiv1beta1.HostStatusBinding },
			touched: true,
		},
		"installing": {
			change:  func(a *aiv1beta1.Agent) { a.Status.DebugInfo.State = aiv1beta1.HostStatusInstallingInProgress },
			touched: true,
		},
		"waits for the other hosts": {
			change: func(a *aiv1beta1.Agent) { a.Status.DebugInfo.State = aiv1beta1.HostStatusKnown },
		},
		"failed": {
			change: func(a *aiv1beta1.Agent) { a.Status.DebugInfo.State = aiv1beta1.HostStatusError },
		},
		"bound to the cluster of another client": {
			change: func(a *aiv1beta1.Agent) {
				a.Spec.ClusterDeploymentName = &aiv1beta1.ClusterReference{Namespace: "elsewhere", Name: "other"}
				a.Status.DebugInfo.State = aiv1beta1.HostStatusBinding
			},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			w := booted(t)
			agent := discovered("a", "m", bootMAC)
			tc.change(agent)
			w.create(agent)
			touched := func() string { return w.agent("a").Annotations[bootstrapv1.RefreshAnnotation] }
			w.reconcile()
			w.reconcile()
			w.Expect(touched()).To(BeEmpty(), "the wait has begun only")
			w.clock = w.clock.Add(4 * time.Minute)
			w.reconcile()
			if !tc.touched {
				w.Expect(touched()).To(BeEmpty())
				return
			}
			first := touched()
			w.Expect(first).NotTo(BeEmpty())
			w.clock = w.clock.Add(4 * time.Minute)
			w.reconcile()
			w.Expect(touched()).To(Equal(first), "the delay doubles")
			w.clock = w.clock.Add(4 * time.Minute)
			w.reconcile()
			w.Expect(touched()).NotTo(Equal(first))
		})
	}
}

// TestAgentOfInstalledHostIsNotTouched: nothing is expected any more of the Agent of an installed host, even if the host
// has booted the discovery image again.
func TestAgentOfInstalledHostIsNotTouched(t *testing.T) {
	w := installing(t)
	w.enter("a", aiv1beta1.HostStatusAddedToExistingCluster)
	w.reconcile()
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
	w.enter("a", aiv1beta1.HostStatusDiscovering)
	w.reconcile()
	w.clock = w.clock.Add(4 * time.Minute)
	w.reconcile()
	w.Expect(w.agent("a").Annotations).NotTo(HaveKey(bootstrapv1.RefreshAnnotation))
}
