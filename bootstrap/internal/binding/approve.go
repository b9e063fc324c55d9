package binding

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Approve approves the Agent, so that assisted-service may install the host. The approval is the last write:
// afterwards assisted-service ignores changes of the Agent's settings.
func (b *Binder) Approve(ctx context.Context, s *scope.Scope) (bool, error) {
	const stage = bootstrapv1.HostApprovedCondition
	agent := s.Agent
	if agent.Spec.Approved {
		s.Pass(stage, "")
		return true, nil
	}
	if s.Host != nil && metal3.RestoredWithoutHistory(s.Host) {
		return s.Blockf(stage, bootstrapv1.HostRestoredWithoutHistoryReason,
			"BareMetalHost %s/%s was restored from a backup without its status: a cluster may be installed on its server. "+
				"Verify what is on its disk. If the disk may be overwritten, remove the label %s from the BareMetalHost. Deleting this Machine wipes "+
				"the disk, too", s.Host.Namespace, s.Host.Name, metal3.RestoreLabel), nil
	}
	synced := assisted.AgentCondition(agent, aiv1beta1.SpecSyncedCondition)
	switch {
	case synced.Status == corev1.ConditionFalse && synced.Reason == aiv1beta1.InputErrorReason:
		return s.Blockf(stage, bootstrapv1.InvalidConfigurationReason, "assisted-service refuses the settings of %s: %s", s.DescribeHost(agent),
			explained(assisted.RedactURLs(synced.Message))), nil
	case agent.Status.DebugInfo.State != aiv1beta1.HostStatusKnown || synced.Status != corev1.ConditionTrue:
		s.Block(stage, bootstrapv1.WaitingForHostValidationReason, validationMessage(s, b.clock.Now()))
		return s.Disconnected(stage, b.clock.Now()), nil
	case agent.Status.Role != s.Wanted.Role:
		return s.Blockf(stage, bootstrapv1.WaitingForHostValidationReason, "waiting for assisted-service to give %s the role %s",
			s.DescribeHost(agent), s.Wanted.Role), nil
	}
	if proceed, err := b.prerequisites.Confirm(ctx, s, stage); !proceed {
		return proceed, err
	}
	if proceed, err := b.applyAgent(ctx, s, stage, true, true); !proceed {
		return proceed, err
	}
	s.Event(corev1.EventTypeNormal, bootstrapv1.HostApprovedReason, "Host %s may be installed as %s %s", hostOf(s), s.Wanted.Role,
		s.Wanted.Hostname)
	s.Pass(stage, "")
	return true, nil
}
