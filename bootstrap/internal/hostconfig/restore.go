package hostconfig

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/binding"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootdata"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/identification"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// restore keeps the facts about a Machine that is older than the status of its config, as after a move or a
// restore. It ends the phases for an installed host, so that they do not touch the host.
func (r *Reconciler) restore(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Machine != nil && s.Config.Status.DataSecretName == "" && s.Machine.Spec.Bootstrap.DataSecretName != nil {
		s.Status.DataSecretName = *s.Machine.Spec.Bootstrap.DataSecretName
		s.Status.Initialization.DataSecretCreated = ptr.To(true)
	}
	if s.Config.Status.BootMode == "" && s.DataHandedOut() {
		s.Status.BootMode = s.BootMode
	}
	if !s.IsFinished() {
		return true, nil
	}
	if bootdata.Owns(s) {
		if err := r.writer.KeepOwner(ctx, s, s.DataSecret); err != nil {
			return false, err
		}
	}
	if err := r.fencing.Retire(ctx, s); err != nil {
		return false, err
	}
	restoreStatus(s)
	s.Pass(bootstrapv1.DiscoveryImageReadyCondition, "")
	s.Pass(bootstrapv1.DataSecretAvailableCondition, "")
	if agent := discoveredAgain(s, r.Clock.Now()); agent != nil {
		s.Blockf(bootstrapv1.HostIdentifiedCondition, bootstrapv1.HostBootedDiscoveryAgainReason,
			"the installed host booted the discovery image again (Agent %s). Its disk was not touched. Fix the boot order and restart the host. "+
				"Deleting the Machine would wipe it", agent.Name)
	} else {
		message := ""
		if s.Agent != nil {
			message = identification.RunsOn(s)
		}
		if recorded := s.Recorded(bootstrapv1.HostIdentifiedCondition); recorded != nil && recorded.Status == metav1.ConditionTrue {
			message = recorded.Message
		}
		s.Pass(bootstrapv1.HostIdentifiedCondition, message)
	}
	s.Pass(bootstrapv1.HostBoundCondition, "")
	s.Pass(bootstrapv1.HostApprovedCondition, "")
	s.Pass(bootstrapv1.HostInstalledCondition, "")
	return false, nil
}

// restoreStatus restores from the Agent of an installed host what the status records of the Agent. The status may have
// been lost, and an Agent may be behind its own state when it is installed. The Agent is proven as before the
// installation. Recorded values that the Agent no longer reports stay.
func restoreStatus(s *scope.Scope) {
	// The infrastructure machine shows whether a BareMetalHost exists to compare with.
	if s.InfraMachine == nil {
		return
	}
	agent := desired.Identify(s.Facts, nil).Agent
	if agent == nil || !facts.Installed(agent) || !facts.Bound(agent) || !agent.Spec.Approved || s.BoundElsewhere(agent) {
		return
	}
	switch {
	case s.Config.Status.AgentRef == nil:
		s.Status.AgentRef = &corev1.LocalObjectReference{Name: agent.Name}
	case !s.IsRecorded(agent):
		return
	}
	s.Agent = agent
	if s.Status.InstallationProgress == "" || agent.Status.Progress.CurrentStage == aiv1beta1.HostStageDone {
		binding.Reached(s, aiv1beta1.HostStageDone)
	}
}

// discoveredAgain returns an Agent on the Machine's installed host that waits for an installation, or for a boot
// from its disk; nil if none exists.
func discoveredAgain(s *scope.Scope, now time.Time) *aiv1beta1.Agent {
	for _, agent := range s.Agents {
		switch {
		case agent.Spec.Approved && agent.Status.DebugInfo.State != aiv1beta1.HostStatusInstallingPendingUserAction:
			continue
		case agent.Spec.Approved && nodeIsBack(s, agent, now):
			continue
		case agent.Spec.Approved && s.IsRecorded(agent):
			return agent
		case !assisted.HasInventory(agent):
			continue
		}
		if s.Host == nil || s.Mismatch(agent) == "" {
			return agent
		}
	}
	return nil
}

// nodeNoticed is the time after which the Machine reports the loss of its Node. Kubernetes takes 40 seconds, and
// Cluster API takes five minutes if the cluster does not answer.
const nodeNoticed = 10 * time.Minute

// nodeIsBack reports whether the Node of the host runs again, after its Agent reported a boot of the discovery
// image. assisted-service does not notice the return of a day-2 host: the state of the Agent stays. So a boot that
// was once reported as over is over. Otherwise each restart of the Node would count as another boot of the
// discovery image.
func nodeIsBack(s *scope.Scope, agent *aiv1beta1.Agent, now time.Time) bool {
	since := assisted.AgentCondition(agent, aiv1beta1.InstalledCondition).LastTransitionTime.Time
	identified := s.Recorded(bootstrapv1.HostIdentifiedCondition)
	if identified != nil && identified.Status == metav1.ConditionTrue && identified.LastTransitionTime.After(since) {
		return true
	}
	// The Machine, which knew its Node, was taken from its config or is restored after it.
	if s.Machine == nil {
		return false
	}
	ready := meta.FindStatusCondition(s.Machine.Status.Conditions, clusterv1.MachineNodeReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionTrue {
		return false
	}
	left := nodeNoticed - now.Sub(since)
	if left <= 0 || ready.LastTransitionTime.After(since) {
		return true
	}
	s.Again.In(left)
	return false
}
