package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

const (
	// behindAfter is how long a host may stay in a stage that most of the others have left: servers of one kind differ by a few minutes.
	behindAfter = 10 * time.Minute
	// sideBySide is how far apart the installations of hosts that join a cluster may have begun for them to be
	// compared. Those of another day are perhaps of another kind.
	sideBySide = time.Hour
)

// installationStages are the stages of a host's installation in the order in which it goes through them; which of them
// it goes through depends on its role (assisted-service, internal/host/hostutil).
var installationStages = []models.HostStage{
	models.HostStageStartingInstallation, models.HostStageInstalling, models.HostStageWritingImageToDisk, models.HostStageCopyingRegistryDataToDisk,
	models.HostStageWaitingForControlPlane, models.HostStageWaitingForBootkube, models.HostStageWaitingForController,
	models.HostStageRebooting, models.HostStageWaitingForIgnition, models.HostStageConfiguring, models.HostStageJoined, models.HostStageDone,
}

// waitingStages are those in which a host waits for others, and of which it says nothing how long they last.
var waitingStages = []models.HostStage{models.HostStageWaitingForControlPlane, models.HostStageWaitingForBootkube, models.HostStageWaitingForController}

// goingOn are the states of a host that is being installed or is installed, and needs nobody for it.
var goingOn = []string{models.HostStatusInstalling, models.HostStatusInstallingInProgress, models.HostStatusInstalled, models.HostStatusAddedToExistingCluster}

// composeHostsProgressing tells which hosts are much slower than the others.
func (v *View) composeHostsProgressing(cp *controlplanev1.OpenshiftAssistedControlPlane) {
	const t = controlplanev1.HostsProgressingCondition
	behind, _ := v.behind()
	if len(behind) == 0 {
		conditions.Delete(cp, t)
		return
	}
	told := make([]string, 0, len(behind))
	for _, agent := range behind {
		told = append(told, v.lagging(agent))
	}
	conditions.Set(cp, no(t, controlplanev1.HostsLaggingReason, fmt.Sprintf("%s; most of the others have left that stage more than %d minutes ago: "+
		"look at the console of the host through its BMC, at the speed of its virtual media, network and disk, and at its boot order; nothing is done about it from here",
		bound.Join(told, "host"), int(behindAfter.Minutes()))))
}

// lagging names a host, its Machine, its stage, and since when it is there. It does not say for how long: each minute would be a write.
func (v *View) lagging(agent *aiv1beta1.Agent) string {
	name, machines := "host "+bound.Value(facts.Hostname(agent)), slices.Concat(v.Machines, v.Workers)
	if i := slices.IndexFunc(machines, func(m *clusterv1.Machine) bool { return facts.RunsOn(agent, m) }); i >= 0 {
		name = fmt.Sprintf("%s (Machine %s)", name, machines[i].Name)
	}
	progress := &agent.Status.Progress
	return fmt.Sprintf("%s is in stage %q since %s", name, bound.Value(string(progress.CurrentStage)), progress.StageStartTime.UTC().Format(time.RFC3339))
}

// behind are the hosts that are much slower than the others, in the order of their names, and after what time another
// one would be; zero: never.
func (v *View) behind() (hosts []*aiv1beta1.Agent, left time.Duration) {
	if v.Deleting() || v.GivesUp() || v.Phase == controlplanev1.InstallationFailed {
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

// behindFrom is when a host falls behind those of its role that are installed beside it if nothing happens until then:
// more than half of them have left its stage for so long, and so long it has been there itself. It is zero as long as
// they have not left it, for a host that waits for others, and for one that is alone.
//
// assisted-service tells of each host only since when it is in its present stage. Hence one has left another's stage at
// the latest when it entered its own. What was told of a host stays true while that is in its stage, although the
// others go on, and nobody knows any more when they left it.
func (v *View) behindFrom(host *aiv1beta1.Agent) time.Time {
	stage, since := host.Status.Progress.CurrentStage, host.Status.Progress.StageStartTime
	if !inStep(host) || stage == models.HostStageDone || slices.Contains(waitingStages, stage) {
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

// startedAfter is how much later than that of another host the installation of a host began, and whether they are
// installed beside each other. Those that are installed with the cluster begin together. Of those that join it each
// begins when it is approved and misses nothing: the time of the condition is that of its status alone
// (assisted-service, agent controller).
func (v *View) startedAfter(host, other *aiv1beta1.Agent) (later time.Duration, alike bool) {
	if !v.Progress.DayTwo {
		return 0, true
	}
	began, before := assisted.AgentCondition(host, aiv1beta1.RequirementsMetCondition), assisted.AgentCondition(other, aiv1beta1.RequirementsMetCondition)
	later = began.LastTransitionTime.Sub(before.LastTransitionTime.Time)
	return later, began.Status == corev1.ConditionTrue && before.Status == corev1.ConditionTrue && later.Abs() <= sideBySide
}

// inStep reports whether it is known how far a host is, and it goes on by itself. The bootstrap host goes another way than the others.
func inStep(host *aiv1beta1.Agent) bool {
	return host.DeletionTimestamp.IsZero() && !host.Status.Bootstrap && host.Status.Progress.StageStartTime != nil && rank(host) >= 0 && slices.Contains(goingOn, host.Status.DebugInfo.State)
}

func rank(host *aiv1beta1.Agent) int {
	return slices.Index(installationStages, host.Status.Progress.CurrentStage)
}
