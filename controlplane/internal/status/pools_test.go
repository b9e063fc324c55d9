package status

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// TestRollingOutReasonNamesBlockingPools: alerts select by reason; a message cannot be matched.
func TestRollingOutReasonNamesBlockingPools(t *testing.T) {
	paused := workload.Pool{Name: "worker", Paused: true, Behind: true}
	degraded := workload.Pool{Name: "infra", Degraded: "1 Node", Behind: true}
	behind := workload.Pool{Name: "gpu", Behind: true}
	for situation, tc := range map[string]struct {
		pools     []workload.Pool
		upgrading string
		failing   string
		status    metav1.ConditionStatus
		reason    string
	}{
		"upgrade proceeds": {[]workload.Pool{behind}, "4.20.1", "", metav1.ConditionTrue, clusterv1.RollingOutReason},
		"a pool is paused": {
			[]workload.Pool{behind, paused}, "4.20.1", "", metav1.ConditionTrue, controlplanev1.MachineConfigPoolPausedReason,
		},
		"a pool is degraded, another is paused": {
			[]workload.Pool{paused, degraded}, "4.20.1", "", metav1.ConditionTrue, controlplanev1.MachineConfigPoolDegradedReason,
		},
		"the upgrade fails": {
			[]workload.Pool{paused, degraded}, "4.20.1", "etcd", metav1.ConditionTrue, controlplanev1.UpgradeFailingReason,
		},
		"upgraded, a pool is paused": {
			[]workload.Pool{paused}, "", "", metav1.ConditionFalse, controlplanev1.MachineConfigPoolPausedReason,
		},
		"upgraded, a paused pool has caught up": {
			[]workload.Pool{{Name: "worker", Paused: true}}, "", "", metav1.ConditionFalse, clusterv1.NotRollingOutReason,
		},
		"upgraded, workers follow": {[]workload.Pool{behind}, "", "", metav1.ConditionFalse, clusterv1.NotRollingOutReason},
	} {
		t.Run(situation, func(t *testing.T) {
			f := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
				cp.Status.Installation.Phase = controlplanev1.InstallationInstalled
				cp.Status.PoolsBehind = []string{"worker"}
			})
			f.Workload = workload.State{Connected: true, OpenShiftVersion: "4.19.3", Upgrading: tc.upgrading, Pools: tc.pools, PoolsKnown: true}
			if tc.failing != "" {
				f.Workload.Rollout = &workload.Rollout{Failing: tc.failing}
			}
			NewWithT(t).Expect(viewOf(f).replicas().RollingOut()).To(And(HaveField("Status", tc.status), HaveField("Reason", tc.reason)))
		})
	}
}
