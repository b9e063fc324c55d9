package hostconfig

import (
	"context"
	"fmt"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// endFormer lets Agents go that are left of the host's former Machine, where assisted-service cannot take its Node out
// of the cluster. It tries until somebody reaches that cluster; but once the host registers it drops the Agent all the
// same, and makes none in its place before the host is started again (crd_utils.go there: CreateAgentCR updates the
// Agent that is being deleted, and takes its finalizer off). It returns what is to be told of those that are still
// there.
func (r *Reconciler) endFormer(ctx context.Context, s *scope, former []*aiv1beta1.Agent) (string, error) {
	if len(former) == 0 {
		return "", nil
	}
	names := make([]string, 0, len(former))
	for _, agent := range former {
		names = append(names, agent.Name)
		cleanup := assisted.AgentCondition(agent, aiv1beta1.CleanupCondition)
		if cleanup.Status != corev1.ConditionFalse || metav1.HasAnnotation(agent.ObjectMeta, skipSpokeCleanupAnnotation) {
			continue
		}
		if _, err := r.skipSpokeCleanup(ctx, agent); err != nil {
			return "", err
		}
		s.queueEvent(corev1.EventTypeWarning, "NodeLeftBehind",
			"Agent %s of the host's former Machine is deleted although assisted-service could not remove its Node from the cluster (%s). If the Node remains there, delete it, which wipes nothing",
			agent.Name, assisted.RedactURLs(cleanup.Message))
	}
	return fmt.Sprintf("Agent %s of its former Machine is still being deleted, and assisted-service forgets a host that registers before: if no Agent comes then, restart the host", bound.List(names)), nil
}
