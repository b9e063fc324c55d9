package deletion

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// EndFormer completes the deletion of the Agents of the host's former Machine if assisted-service cannot remove
// the Node of that Machine from the cluster. assisted-service retries until that cluster is reachable.
//
// When the host registers, assisted-service drops the Agent all the same. It creates no other Agent before the
// host is started again. CreateAgentCR in its crd_utils.go updates the Agent that is being deleted, and removes
// the finalizer of the Agent.
//
// EndFormer returns the message about the Agents that still exist.
func (d *Releaser) EndFormer(ctx context.Context, s *scope.Scope, former []*aiv1beta1.Agent) (string, error) {
	if len(former) == 0 {
		return "", nil
	}
	names := make([]string, 0, len(former))
	for _, agent := range former {
		names = append(names, agent.Name)
		cleanup := assisted.AgentCondition(agent, aiv1beta1.CleanupCondition)
		if cleanup.Status != corev1.ConditionFalse || metav1.HasAnnotation(agent.ObjectMeta, assisted.SkipSpokeCleanupAnnotation) {
			continue
		}
		if _, err := d.SkipSpokeCleanup(ctx, agent); err != nil {
			return "", err
		}
		s.Event(corev1.EventTypeWarning, "NodeLeftBehind",
			"Agent %s of the former Machine of host %s is deleted although assisted-service could not remove its Node from the cluster (%s). "+
				"If the Node remains there, delete it, which wipes nothing",
			agent.Name, s.HostName(agent), assisted.RedactURLs(cleanup.Message))
	}
	return fmt.Sprintf("Agent %s of its former Machine is still being deleted, and assisted-service forgets a host that registers earlier. "+
		"If no Agent appears afterwards, restart the host", bound.List(names)), nil
}
