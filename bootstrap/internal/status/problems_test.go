package status

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

func TestProblemsAreNoWaits(t *testing.T) {
	state := func(conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: status, Reason: reason}
	}
	const is, isNot = metav1.ConditionTrue, metav1.ConditionFalse
	for situation, tc := range map[string]struct {
		conditions []metav1.Condition
		deleting   bool
		wanted     []string
	}{
		"the host is being installed": {conditions: []metav1.Condition{
			state(bootstrapv1.ReadyCondition, isNot, bootstrapv1.HostInstallingReason),
			state(bootstrapv1.HostAvailableCondition, is, bootstrapv1.HostChosenReason),
			state(bootstrapv1.HostInstalledCondition, isNot, bootstrapv1.HostInstallingReason),
			state(bootstrapv1.DeletingCondition, isNot, bootstrapv1.NotDeletingReason),
		}},
		"the host is installed": {conditions: []metav1.Condition{
			state(bootstrapv1.ReadyCondition, is, bootstrapv1.HostInstalledReason),
			state(bootstrapv1.HostInstalledCondition, is, bootstrapv1.HostInstalledReason),
		}},
		"the host is refused": {conditions: []metav1.Condition{
			state(bootstrapv1.HostIdentifiedCondition, isNot, bootstrapv1.HostRefusedReason),
		}, wanted: []string{bootstrapv1.HostRefusedReason}},
		"only Ready repeats that the host is refused": {conditions: []metav1.Condition{
			state(bootstrapv1.ReadyCondition, isNot, bootstrapv1.HostRefusedReason),
		}},
		"waiting for the host": {conditions: []metav1.Condition{
			state(bootstrapv1.HostIdentifiedCondition, isNot, bootstrapv1.WaitingForHostReason),
		}},
		"no host fits yet": {conditions: []metav1.Condition{
			state(bootstrapv1.DiscoveryImageReadyCondition, isNot, bootstrapv1.WaitingForDiscoveryImageReason),
			state(bootstrapv1.HostAvailableCondition, isNot, bootstrapv1.NoHostFitsReason),
		}},
		"no host fits": {conditions: []metav1.Condition{
			state(bootstrapv1.ReadyCondition, isNot, bootstrapv1.NoHostFitsReason),
			state(bootstrapv1.HostIdentifiedCondition, isNot, bootstrapv1.NoHostFitsReason),
			state(bootstrapv1.HostAvailableCondition, isNot, bootstrapv1.NoHostFitsReason),
		}, wanted: []string{bootstrapv1.NoHostFitsReason}},
		"the pull secret is missing, and the host unhealthy": {conditions: []metav1.Condition{
			state(bootstrapv1.ReadyCondition, isNot, bootstrapv1.PullSecretMissingReason),
			state(bootstrapv1.DiscoveryImageReadyCondition, isNot, bootstrapv1.PullSecretMissingReason),
			state(bootstrapv1.HostAvailableCondition, isNot, bootstrapv1.HostUnhealthyReason),
		}, wanted: []string{bootstrapv1.PullSecretMissingReason, bootstrapv1.HostUnhealthyReason}},
		"paused": {conditions: []metav1.Condition{state(clusterv1.PausedCondition, is, clusterv1.PausedReason)}},
		"the Agent is being deleted": {conditions: []metav1.Condition{
			state(bootstrapv1.HostInstalledCondition, isNot, bootstrapv1.HostInstallationFailedReason),
			state(bootstrapv1.DeletingCondition, is, bootstrapv1.DeletingAgentReason),
		}, deleting: true},
		"the deletion is blocked": {conditions: []metav1.Condition{
			state(bootstrapv1.DeletingCondition, is, bootstrapv1.HostInAnotherClusterReason),
		}, deleting: true, wanted: []string{bootstrapv1.HostInAnotherClusterReason}},
	} {
		t.Run(situation, func(t *testing.T) {
			var reasons []string
			for _, c := range Problems(tc.conditions, tc.deleting) {
				reasons = append(reasons, c.Reason)
			}
			NewWithT(t).Expect(reasons).To(Equal(tc.wanted))
		})
	}
}
