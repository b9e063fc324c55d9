package installed

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/attempt"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

const (
	// behindAfter is the time that a host may stay in a stage that most of the others have left. Servers of
	// one kind differ by a few minutes.
	behindAfter = 10 * time.Minute
	// sideBySide is the maximum time between the starts of two installations that are compared, for hosts
	// that join a cluster. Hosts of another day may be of another kind.
	sideBySide = time.Hour
)

// installationStages are the stages of a host's installation, in order. The role of a host determines its
// stages (assisted-service, internal/host/hostutil).
var installationStages = []aiv1beta1.HostStage{
	aiv1beta1.HostStageStartingInstallation,
	aiv1beta1.HostStageInstalling,
	aiv1beta1.HostStageWritingImageToDisk,
	aiv1beta1.HostStageCopyingRegistryDataToDisk,
	aiv1beta1.HostStageWaitingForControlPlane, aiv1beta1.HostStageWaitingForBootkube, aiv1beta1.HostStageWaitingForController,
	aiv1beta1.HostStageRebooting, aiv1beta1.HostStageWaitingForIgnition, aiv1beta1.HostStageConfiguring,
	aiv1beta1.HostStageJoined, aiv1beta1.HostStageDone,
}

// waitingStages are the stages in which a host waits for others. Their duration depends on the others.
var waitingStages = []aiv1beta1.HostStage{
	aiv1beta1.HostStageWaitingForControlPlane, aiv1beta1.HostStageWaitingForBootkube, aiv1beta1.HostStageWaitingForController,
}

// goingOn are the states of a host that is being installed or is installed, and needs no user action.
var goingOn = []string{
	aiv1beta1.HostStatusInstalling, aiv1beta1.HostStatusInstallingInProgress,
	aiv1beta1.HostStatusInstalled, aiv1beta1.HostStatusAddedToExistingCluster,
}

// HostsProgressing returns the condition for hosts that are much slower than the others, or nil without such hosts.
func (v *View) HostsProgressing() *metav1.Condition {
	behind, _ := v.behind()
	if len(behind) == 0 {
		return nil
	}
	texts := make([]string, 0, len(behind))
	for _, agent := range behind {
		texts = append(texts, v.lagging(agent))
	}
	return ptr.To(condition.False(
		controlplanev1.HostsProgressingCondition, controlplanev1.HostsLaggingReason,
		fmt.Sprintf("%s; most of the others have left that stage more than %d minutes ago. Check the console of the host through its BMC, the "+
			"speed of its virtual media, network and disk, and its boot order. The provider does not act on this",
			bound.Join(texts, "host"), int(behindAfter.Minutes()))))
}

// UntilHostLags returns the time until another host counts as much slower; zero: never.
func (v *View) UntilHostLags() time.Duration {
	_, left := v.behind()
	return left
}

// lagging names a host, its Machine, its stage, and the start of the stage. It does not count the minutes:
// each would be a write.
func (v *View) lagging(agent *aiv1beta1.Agent) string {
	name, machines := "host "+bound.Value(facts.Hostname(agent)), slices.Concat(v.Machines, v.Workers)
	if i := slices.IndexFunc(machines, func(m *clusterv1.Machine) bool { return facts.RunsOn(agent, m) }); i >= 0 {
		name = fmt.Sprintf("%s (Machine %s)", name, machines[i].Name)
	}
	progress := &agent.Status.Progress
	return fmt.Sprintf(
		"%s is in stage %q since %s", name, bound.Value(string(progress.CurrentStage)), progress.StageStartTime.UTC().Format(time.RFC3339),
	)
}

// behind returns the hosts that are much slower than the others, sorted by name, and the time until another
// host will be; zero: never.
func (v *View) behind() (hosts []*aiv1beta1.Agent, left time.Duration) {
	if v.Deleting() || attempt.GivesUp(v.Facts) || v.Phase == controlplanev1.InstallationFailed {
		return nil, 0
	}
	for i := range v.Agents {
		host := &v.Agents[i]
		at := v.behindFrom(host)
		switch until := at.Sub(v.Now); {
		case at.IsZero():
		case until <= 0:
			hosts = append(hosts, host)
		case left == 0 || until < left:
			left = until
		}
	}
	slices.SortFunc(hosts, func(a, b *aiv1beta1.Agent) int { return strings.Compare(facts.Hostname(a), facts.Hostname(b)) })
	return hosts, left
}

// behindFrom returns the time from which a host is behind, if nothing changes until then. The host is compared with the hosts of its role
// that are installed together with it. More than half of them must have left its stage behindAfter ago. The host itself must have been in
// the stage for that time. The result is zero while too few have left the stage. It is also zero for a host that waits for others, and for
// a host that is alone.
//
// assisted-service reports only the start of the present stage of a host. Another host has left an earlier
// stage at the latest when it entered its present one. A reported host stays reported while it is in its
// stage. When the others proceed, the time at which they left the stage is no longer known.
func (v *View) behindFrom(host *aiv1beta1.Agent) time.Time {
	stage, since := host.Status.Progress.CurrentStage, host.Status.Progress.StageStartTime
	if !inStep(host) || stage == aiv1beta1.HostStageDone || slices.Contains(waitingStages, stage) {
		return time.Time{}
	}
	others, left := 0, []time.Time{}
	for i := range v.Agents {
		other := &v.Agents[i]
		if other.Name == host.Name || other.Status.Role != host.Status.Role || !inStep(other) {
			continue
		}
		later, alike := v.startedAfter(host, other)
		if !alike {
			continue
		}
		others++
		if rank(other) > rank(host) {
			left = append(left, other.Status.Progress.StageStartTime.Add(later))
		}
	}
	most := others/2 + 1
	switch {
	case others == 0 || len(left) < most:
		return time.Time{}
	case strings.Contains(conditions.GetMessage(v.ControlPlane, controlplanev1.HostsProgressingCondition), v.lagging(host)):
		return v.Now
	}
	slices.SortFunc(left, time.Time.Compare)
	from := left[most-1]
	if since.After(from) {
		from = since.Time
	}
	return from.Add(behindAfter)
}

// startedAfter returns how much later the installation of a host began than that of another host, and whether
// the two are comparable. Hosts that are installed with the cluster begin together. A host that joins the
// cluster begins when it is approved and meets its requirements. The condition changes its time with its
// status alone (assisted-service, agent controller).
func (v *View) startedAfter(host, other *aiv1beta1.Agent) (later time.Duration, alike bool) {
	if !v.Progress.DayTwo {
		return 0, true
	}
	began, before := assisted.AgentCondition(host, aiv1beta1.RequirementsMetCondition),
		assisted.AgentCondition(other, aiv1beta1.RequirementsMetCondition)
	later = began.LastTransitionTime.Sub(before.LastTransitionTime.Time)
	return later, began.Status == corev1.ConditionTrue && before.Status == corev1.ConditionTrue && later.Abs() <= sideBySide
}

// inStep reports whether the stage of a host is known and the host proceeds automatically. The bootstrap host
// has other stages than the rest.
func inStep(host *aiv1beta1.Agent) bool {
	return host.DeletionTimestamp.IsZero() && !host.Status.Bootstrap && host.Status.Progress.StageStartTime != nil && rank(host) >= 0 &&
		slices.Contains(goingOn, host.Status.DebugInfo.State)
}

func rank(host *aiv1beta1.Agent) int {
	return slices.Index(installationStages, host.Status.Progress.CurrentStage)
}
