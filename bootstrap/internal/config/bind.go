package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// States of a host in assisted-service (Agent.status.debugInfo.state) that decide something.
const (
	stateKnownUnbound = "known-unbound"
	stateKnown        = "known"
)

// settling is how long the validations of a host may fail without being reported: right after it registered they always do for a while.
const settling = 20 * time.Second

// bindHost tells the Agent everything, its cluster included, once the cluster accepts hosts.
func (r *Reconciler) bindHost(ctx context.Context, s *scope) (bool, error) {
	const stage = bootstrapv1.HostBoundCondition
	agent := s.agent
	if ref := agent.Spec.ClusterDeploymentName; ref != nil && (ref.Name != s.deployment.Name || ref.Namespace != s.deployment.Namespace) {
		return s.wait(stage, bootstrapv1.HostRefusedReason, "Agent %s is bound to %s, which somebody else did: unbind it", agent.Name, s.clusterOf(agent))
	}
	if bound(agent) && agent.Spec.Approved {
		s.pass(stage, bootstrapv1.HostBoundReason, "")
		return true, nil
	}
	if !assisted.HasInventory(agent) {
		return s.wait(stage, bootstrapv1.HostBindingReason, "waiting for Agent %s to register with the cluster", agent.Name)
	}
	var p *problem
	wish, err := r.wishOf(ctx, s)
	if errors.As(err, &p) {
		return s.wait(stage, p.reason, "%s", p.message)
	}
	if err != nil {
		return false, err
	}
	s.wanted = wish
	return r.bind(ctx, s)
}

func (r *Reconciler) bind(ctx context.Context, s *scope) (bool, error) {
	const stage = bootstrapv1.HostBoundCondition
	agent := s.agent
	if s.registeredAnew() {
		return s.wait(stage, bootstrapv1.ClusterRegisteredAnewReason, "the cluster was installed already, but assisted-service has it in state %q, as one that may be installed anew: "+
			"Agent %s is neither bound nor approved; see the condition Installed of the control plane", s.installation().State, agent.Name)
	}
	obstacle := s.notAccepted()
	synced := assisted.AgentCondition(agent, aiv1beta1.SpecSyncedCondition)
	unbound := strings.HasSuffix(agent.Status.DebugInfo.State, "-unbound")
	if !bound(agent) || !unbound {
		r.written.bound.Delete(keyOf(s.config))
	}
	refusedByService := bound(agent) && unbound && synced.Status == corev1.ConditionFalse && synced.Reason == aiv1beta1.InputErrorReason
	switch {
	case obstacle != "" && (!bound(agent) || refusedByService):
		if refusedByService { // take it back: assisted-service does not try again by itself when the cluster accepts hosts
			if proceed, err := r.tellAgent(ctx, s, stage, false, false); !proceed {
				return proceed, err
			}
		}
		return s.wait(stage, bootstrapv1.ClusterNotAcceptingHostsReason, "%s; Agent %s is bound when it accepts hosts (once it is installed and adds hosts)", obstacle, agent.Name)
	case !bound(agent) && agent.Status.DebugInfo.State != stateKnownUnbound:
		return s.wait(stage, bootstrapv1.WaitingForHostValidationReason, "%s", s.validationMessage())
	}
	if proceed, err := r.tellAgent(ctx, s, stage, true, false); !proceed {
		return proceed, err
	}
	switch {
	case refusedByService:
		return s.wait(stage, bootstrapv1.HostBindingReason, "assisted-service refuses to bind Agent %s: %s", agent.Name, assisted.RedactURLs(synced.Message))
	case !bound(agent) || unbound: // after that the host takes its time, which has to register anew
		_, _ = s.wait(stage, bootstrapv1.HostBindingReason, "waiting for assisted-service to take Agent %s into the cluster", agent.Name)
		return r.overdue(s, r.written.boundAt(keyOf(s.config), r.now()))
	case assisted.AgentCondition(agent, aiv1beta1.BoundCondition).Status != corev1.ConditionTrue:
		return s.wait(stage, bootstrapv1.HostBindingReason, "waiting for Agent %s to register with the cluster", agent.Name)
	}
	s.pass(stage, bootstrapv1.HostBoundReason, "")
	return true, nil
}

// notAccepted says why the cluster does not take the host now; it is empty when it does. Before the installation the cluster takes only workers
// that it counts, and a single node is installed alone: assisted-service never starts with one known host more than it was told of.
func (s *scope) notAccepted() string {
	installation := s.installation()
	switch {
	case !installation.AcceptsHosts:
		return fmt.Sprintf("the cluster does not accept hosts in state %q", installation.State)
	case !installation.DayTwo && s.role() == string(models.HostRoleWorker) && s.install.Spec.ProvisionRequirements.WorkerAgents == 0:
		return "the cluster is installed without workers"
	}
	return ""
}

// registeredAnew tells whether assisted-service takes a cluster that has been installed for one that may still be: a host that is bound to it would be installed
// into a cluster that does not exist.
func (s *scope) registeredAnew() bool {
	installation := s.installation()
	return installation.Registered && !installation.Started && (s.controlPlaneRuns || s.deployment != nil && s.deployment.Spec.Installed)
}

// approveHost lets the host be installed. It comes last: from then on assisted-service ignores what the Agent is told.
func (r *Reconciler) approveHost(ctx context.Context, s *scope) (bool, error) {
	const stage = bootstrapv1.HostApprovedCondition
	agent := s.agent
	if agent.Spec.Approved {
		s.pass(stage, bootstrapv1.HostApprovedReason, "")
		return true, nil
	}
	synced := assisted.AgentCondition(agent, aiv1beta1.SpecSyncedCondition)
	switch {
	case synced.Status == corev1.ConditionFalse && synced.Reason == aiv1beta1.InputErrorReason:
		return s.wait(stage, bootstrapv1.InvalidConfigurationReason, "assisted-service refuses the settings of Agent %s: %s", agent.Name, assisted.RedactURLs(synced.Message))
	case agent.Status.DebugInfo.State != stateKnown || synced.Status != corev1.ConditionTrue:
		return s.wait(stage, bootstrapv1.WaitingForHostValidationReason, "%s", s.validationMessage())
	case string(agent.Status.Role) != s.wanted.role:
		return s.wait(stage, bootstrapv1.WaitingForHostValidationReason, "waiting for assisted-service to give Agent %s the role %s", agent.Name, s.wanted.role)
	}
	if proceed, err := r.tellAgent(ctx, s, stage, true, true); !proceed {
		return proceed, err
	}
	s.tell(corev1.EventTypeNormal, bootstrapv1.HostApprovedReason, "Agent %s may be installed as %s %s", agent.Name, s.wanted.role, s.wanted.hostname)
	s.pass(stage, bootstrapv1.HostApprovedReason, "")
	return true, nil
}

// tellAgent applies the wish. It returns false when the API server refuses it for good.
func (r *Reconciler) tellAgent(ctx context.Context, s *scope, stage string, bind, approve bool) (bool, error) {
	desired := s.wanted.object(s.agent, bind, approve)
	if !approve {
		// The cache may not have our approval yet: it must not be taken back.
		desired.SetResourceVersion(s.agent.ResourceVersion)
	}
	_, err := r.applier.Apply(ctx, desired, s.agent)
	if kube.Refused(err) {
		return s.wait(stage, bootstrapv1.InvalidConfigurationReason, "Agent %s is refused: %s", s.agent.Name, assisted.RedactURLs(err.Error()))
	}
	return err == nil, err
}

// beforeInstallation are the states of a bound host in which nothing has been done to it. Unbinding one that is installed would wipe it.
var beforeInstallation = []string{
	models.HostStatusBinding, models.HostStatusDiscovering, models.HostStatusKnown, models.HostStatusInsufficient, models.HostStatusPendingForInput,
	models.HostStatusDisconnected,
}

// unbind takes an Agent out of the cluster that we bound and that is not used. assisted-service does not start with one known host more than it was told of.
func (r *Reconciler) unbind(ctx context.Context, s *scope, agent *aiv1beta1.Agent) error {
	if !told(agent) || s.boundElsewhere(agent) || !slices.Contains(beforeInstallation, agent.Status.DebugInfo.State) {
		return nil
	}
	// Role and approval must be stated in each Agent; everything else that we told it is withdrawn.
	desired := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"role": string(agent.Spec.Role), "approved": false}}}
	desired.SetGroupVersionKind(aiv1beta1.GroupVersion.WithKind("Agent"))
	desired.SetNamespace(agent.Namespace)
	desired.SetName(agent.Name)
	desired.SetResourceVersion(agent.ResourceVersion)
	_, err := r.applier.Apply(ctx, desired, agent)
	return err
}

func bound(agent *aiv1beta1.Agent) bool { return agent.Spec.ClusterDeploymentName != nil }

// validationMessage says what assisted-service misses, once it had time to make up its mind.
func (s *scope) validationMessage() string {
	left := settling - time.Since(sinceTransition(s.agent).Time)
	if left > 0 {
		s.again.In(left)
		return "waiting for assisted-service to validate Agent " + s.agent.Name
	}
	return "assisted-service holds Agent " + s.agent.Name + " in state " + s.agent.Status.DebugInfo.State + ": " + assisted.RedactURLs(findings(s.agent))
}

// findings are the validations that do not pass. The state names only those that fail, and is an empty list while others are pending: those are in the
// condition.
func findings(agent *aiv1beta1.Agent) string {
	info := strings.TrimSpace(agent.Status.DebugInfo.StateInfo)
	if info != "" && !strings.HasSuffix(info, ":") {
		return info
	}
	validated := assisted.AgentCondition(agent, aiv1beta1.ValidatedCondition)
	if message := strings.TrimSpace(validated.Message); validated.Status != corev1.ConditionTrue && message != "" && !strings.HasSuffix(message, ":") {
		return message
	}
	return "it names no validation that fails"
}
