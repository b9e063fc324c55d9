package controlplane

import (
	"fmt"
	"slices"
	"strings"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// stateInsufficient is that of a host whose validations do not all pass.
const stateInsufficient = "insufficient"

// States of a host in assisted-service that say that it fails.
var failingStates = map[string]bool{"error": true, "preparing-failed": true, stateInsufficient: true, "cancelled": true, "disconnected": true}

// installedCondition tells where the installation is, what it waits for or why it fails.
func (v view) installedCondition() metav1.Condition {
	const t = controlplanev1.InstalledCondition
	standing := v.standing()
	phase := standing.phase
	switch {
	case standing.anew && phase == controlplanev1.InstallationInstalled:
		c := yes(t, controlplanev1.RegisteredAnewReason)
		c.Message = v.registeredAnew()
		return c
	case standing.anew:
		return no(t, controlplanev1.RegisteredAnewReason, v.registeredAnew())
	case phase == controlplanev1.InstallationInstalled:
		return yes(t, controlplanev1.InstalledReason)
	case v.blocked != nil && !v.progress.Started:
		return no(t, v.blocked.reason, v.blocked.message)
	case v.install == nil || !v.progress.Registered:
		return v.notRegistered()
	}
	switch phase {
	case controlplanev1.InstallationPreparing:
		if v.anyHost(preparingFailedStates) || v.failedToPrepare() != nil {
			return v.preparationFailed()
		}
		return no(t, controlplanev1.PreparingReason, v.withLinks("preparing the installation"))
	case controlplanev1.InstallationInstalling:
		if v.progress.State == assisted.StateInstallingPendingForUser {
			return no(t, controlplanev1.UserActionRequiredReason, v.withLinks(v.ofHosts("the installation waits for the user: "+v.progress.StateInfo, pendingStates)))
		}
		return no(t, controlplanev1.InstallingReason, v.withLinks(fmt.Sprintf("%d%%: %s", v.percentage(), v.progress.StateInfo)))
	case controlplanev1.InstallationFinalizing:
		return no(t, controlplanev1.FinalizingReason, v.withLinks(fmt.Sprintf("%d%%: %s", v.percentage(), v.progress.StateInfo)))
	case controlplanev1.InstallationFailed:
		return no(t, controlplanev1.InstallationFailedReason, v.withLinks(v.ofHosts("the installation failed: "+v.progress.StateInfo, failingStates)))
	default:
		return v.pending()
	}
}

var (
	pendingStates         = map[string]bool{"installing-pending-user-action": true}
	preparingFailedStates = map[string]bool{"preparing-failed": true}
	// brokenStates are those in which a host fails whatever becomes of the others.
	brokenStates = map[string]bool{"error": true, "preparing-failed": true, "cancelled": true, "disconnected": true}
)

// notRegistered is the condition until assisted-service has taken the cluster in.
func (v view) notRegistered() metav1.Condition {
	const t = controlplanev1.InstalledCondition
	if v.failure != nil {
		return no(t, controlplanev1.WaitingForAssistedServiceReason, "an earlier step failed and is tried again; see the log of the manager")
	}
	if c := installCondition(v.install, hiveext.ClusterSpecSyncedCondition); c != nil && c.Status == corev1.ConditionFalse {
		return v.notSynced(c)
	}
	if since, left := v.unanswered(); !since.IsZero() && left <= 0 {
		return no(t, controlplanev1.AssistedServiceNotRespondingReason, assisted.NotResponding("AgentClusterInstall "+v.install.Name, v.install.Namespace, since))
	}
	return no(t, controlplanev1.WaitingForAssistedServiceReason, "waiting for assisted-service to take in the cluster")
}

// unanswered tells since when assisted-service is silent about an AgentClusterInstall, zero when it is not, and how long it still may be.
func (v view) unanswered() (since time.Time, left time.Duration) {
	if v.install == nil || v.progress.Registered || !v.install.DeletionTimestamp.IsZero() || !v.owns(v.install) {
		return time.Time{}, 0
	}
	since = v.install.CreationTimestamp.Time
	for i := range v.install.Status.Conditions {
		if changed := v.install.Status.Conditions[i].LastTransitionTime.Time; changed.After(since) {
			since = changed
		}
	}
	return since, assisted.AnswerTime - v.now.Sub(since)
}

func (v view) notSynced(c *hivev1.ClusterInstallCondition) metav1.Condition {
	reason := controlplanev1.WaitingForAssistedServiceReason
	if c.Reason == hiveext.ClusterInputErrorReason {
		reason = controlplanev1.InvalidConfigurationReason
	}
	return no(controlplanev1.InstalledCondition, reason, c.Message)
}

// pending is the condition between registration and start.
func (v view) pending() metav1.Condition {
	const t = controlplanev1.InstalledCondition
	if c := installCondition(v.install, hiveext.ClusterSpecSyncedCondition); c != nil && c.Status == corev1.ConditionFalse && c.Reason == hiveext.ClusterInputErrorReason {
		return v.notSynced(c)
	}
	last := installCondition(v.install, hiveext.ClusterLastInstallationPreparationFailedCondition)
	if last != nil && last.Status == corev1.ConditionTrue || v.anyHost(preparingFailedStates) {
		return v.preparationFailed()
	}
	wanted := int(v.replicas() + v.workerReplicas())
	if len(v.agents) < wanted {
		return v.waitingForHosts(fmt.Sprintf("%d of %d hosts are bound to the cluster", len(v.agents), wanted))
	}
	if v.failedToPrepare() != nil {
		return v.preparationFailed()
	}
	if c := installCondition(v.install, hiveext.ClusterValidatedCondition); c != nil && c.Status == corev1.ConditionFalse {
		return no(t, controlplanev1.ValidationFailedReason, v.ofHosts(c.Message, failingStates))
	}
	if c := installCondition(v.install, hiveext.ClusterCompletedCondition); c != nil && c.Reason == hiveext.ClusterInstallationOnHoldReason {
		return no(t, controlplanev1.InstallationOnHoldReason, "everything is ready; set config.holdInstallation to false to start the installation")
	}
	message := "waiting until all hosts are known and approved"
	if c := installCondition(v.install, hiveext.ClusterRequirementsMetCondition); c != nil && c.Status == corev1.ConditionFalse && c.Message != "" {
		message = c.Message
	}
	return no(t, controlplanev1.WaitingForHostsReason, v.ofHosts(message, failingStates))
}

// passing are the reasons of waits of a host that is not bound yet that end by themselves; so do others that begin with WaitingFor.
var passing = []string{bootstrapv1.HostBindingReason, bootstrapv1.ClusterNotAcceptingHostsReason}

// waitingForHosts names those that keep the installation waiting: Machines whose host is stuck, as Cluster API mirrors it from their OpenshiftAssistedConfigs. Hosts
// that are bound already miss validations only because the others are not there, and are named where no other is to blame.
func (v view) waitingForHosts(message string) metav1.Condition {
	var stuck []string
	for _, m := range slices.Concat(v.machines, v.workers) {
		c := conditions.Get(m, clusterv1.MachineBootstrapConfigReadyCondition)
		bound := slices.ContainsFunc(v.agents, func(agent aiv1beta1.Agent) bool { return agent.Labels[infraEnvLabel] == m.Name })
		if bound || c == nil || c.Status != metav1.ConditionFalse || slices.Contains(passing, c.Reason) ||
			strings.HasPrefix(c.Reason, "WaitingFor") && c.Reason != bootstrapv1.WaitingForHostIdentityReason && c.Reason != bootstrapv1.WaitingForHostValidationReason {
			continue
		}
		stuck = append(stuck, fmt.Sprintf("Machine %s: %s: %s", m.Name, c.Reason, c.Message))
	}
	if len(stuck) == 0 {
		return no(controlplanev1.InstalledCondition, controlplanev1.WaitingForHostsReason, v.ofHosts(message, failingStates))
	}
	if more := len(stuck) - shownNames; more > 0 {
		stuck = append(stuck[:shownNames], fmt.Sprintf("%d more Machines", more))
	}
	return no(controlplanev1.InstalledCondition, controlplanev1.WaitingForHostsReason, v.ofHosts(message+"; "+strings.Join(stuck, "; "), brokenStates))
}

// preparationFailed tells what failed before anything was written to a disk. assisted-service says it of the cluster only where it failed itself;
// of a host that failed, for example to pull an image, only the Agent tells.
func (v view) preparationFailed() metav1.Condition {
	message := "the preparation of the installation failed and is tried again"
	last := installCondition(v.install, hiveext.ClusterLastInstallationPreparationFailedCondition)
	switch failed := last != nil && last.Status == corev1.ConditionTrue; {
	case failed:
		message += ": " + last.Message
	case !v.anyHost(preparingFailedStates) && v.failedToPrepare() != nil:
		return *v.failedToPrepare()
	}
	return no(controlplanev1.InstalledCondition, controlplanev1.PreparationFailedReason, v.withLinks(v.ofHosts(message, failingStates)))
}

// failedToPrepare returns the condition that was reported when a preparation failed. It stays while assisted-service tries again, over and over,
// until a preparation succeeds.
func (v view) failedToPrepare() *metav1.Condition {
	if before := conditions.Get(v.before, controlplanev1.InstalledCondition); before != nil && before.Reason == controlplanev1.PreparationFailedReason {
		return before
	}
	return nil
}

func (v view) anyHost(states map[string]bool) bool {
	return slices.ContainsFunc(v.agents, func(agent aiv1beta1.Agent) bool { return states[agent.Status.DebugInfo.State] })
}

// consequence is what assisted-service says of hosts that failed only because another one did.
const consequence = "Host is part of a cluster that failed to install"

// ofHosts adds which hosts are in one of the given states, and what they say; causes alone, where there are any.
func (v view) ofHosts(message string, states map[string]bool) string {
	var causes, consequences []string
	for i := range v.agents {
		switch agent := &v.agents[i]; {
		case !states[agent.Status.DebugInfo.State]:
		case agent.Status.DebugInfo.StateInfo == consequence:
			consequences = append(consequences, describe(agent))
		default:
			causes = append(causes, describe(agent))
		}
	}
	hosts := causes
	if len(hosts) == 0 {
		hosts = consequences
	}
	if more := len(hosts) - shownNames; more > 0 {
		hosts = append(hosts[:shownNames], fmt.Sprintf("%d more hosts", more))
	}
	if len(hosts) == 0 {
		return message
	}
	return strings.TrimRight(message, ". ") + "; " + strings.Join(hosts, "; ")
}

// describe says what a host misses. Of validations, the state names only those that fail: those that are pending are in the condition.
func describe(agent *aiv1beta1.Agent) string {
	info := agent.Status.DebugInfo.StateInfo
	validated := assisted.AgentCondition(agent, aiv1beta1.ValidatedCondition)
	if agent.Status.DebugInfo.State == stateInsufficient && validated.Status == corev1.ConditionFalse && validated.Message != "" {
		info = validated.Message
	}
	return fmt.Sprintf("host %s: %s", hostname(agent), assisted.RedactURLs(info))
}

// withLinks adds where assisted-service's events and logs are.
func (v view) withLinks(message string) string {
	if v.progress.EventsURL != "" {
		message += "; events: " + v.progress.EventsURL
	}
	if v.progress.LogsURL != "" {
		message += "; logs: " + v.progress.LogsURL
	}
	return message
}

func installCondition(install *hiveext.AgentClusterInstall, conditionType hivev1.ClusterInstallConditionType) *hivev1.ClusterInstallCondition {
	if install == nil {
		return nil
	}
	for i := range install.Status.Conditions {
		if install.Status.Conditions[i].Type == conditionType {
			c := install.Status.Conditions[i]
			c.Message = assisted.RedactURLs(c.Message)
			return &c
		}
	}
	return nil
}
