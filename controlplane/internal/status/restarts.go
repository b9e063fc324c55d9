package status

import (
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// plannedRestarts are the changes for which API server or control-plane hosts restart now, as was seen last. An upgrade
// is read from the status as well, so that a restart of the manager does not forget it while the cluster cannot be
// asked.
func (v *View) plannedRestarts() []string {
	planned := slices.Clone(v.Workload.Restarts)
	if to := v.upgradeStatus().Version; to != "" {
		planned = append([]string{"the cluster is being upgraded to " + to}, planned...)
	}
	return planned
}

// restartLeft is how much longer a planned restart explains that the control plane does not serve; zero: it does not.
// It explains only what served before: see unknownLeft.
func (v *View) restartLeft(conditionType string) time.Duration {
	hosts, before := v.Replicas(), conditions.Get(v.ControlPlane, conditionType)
	switch {
	case before == nil, !v.Installed(), v.healthy(), v.healthKnown() && hosts > 1: // of several hosts others serve meanwhile
		return 0
	case !v.restartIsKnown(before):
		return 0
	}
	return unknownLeft(before, facts.RestartTime(hosts), v.Now)
}

// unknownLeft is how much longer a condition may be Unknown until it has to be False. The time begins when the
// condition becomes Unknown, and survives a restart of the manager with it. A condition that is False stays False: the
// time does not begin again before the condition was True.
func unknownLeft(before *metav1.Condition, limit time.Duration, now time.Time) time.Duration {
	switch {
	case before == nil, before.Status == metav1.ConditionTrue:
		return limit
	case before.Status == metav1.ConditionFalse:
		return 0
	}
	return max(0, limit-now.Sub(before.LastTransitionTime.Time))
}

// restartIsKnown reports whether a restart is planned, or was when the condition was reported: the manager may have
// restarted since and not have reached the cluster.
func (v *View) restartIsKnown(before *metav1.Condition) bool {
	reported := before.Reason == controlplanev1.ControlPlaneRestartingReason && !v.Workload.Connected
	return reported || len(v.plannedRestarts()) > 0
}

// restarting is the condition meanwhile.
func (v *View) restarting(conditionType string) metav1.Condition {
	if before := conditions.Get(v.ControlPlane, conditionType); len(v.plannedRestarts()) == 0 { // that of before the manager restarted
		return *before
	}
	causes := bound.Join(v.plannedRestarts(), "")
	if v.healthKnown() {
		causes += "; " + bound.Join(v.Workload.Unhealthy, "")
	}
	return unknown(conditionType, controlplanev1.ControlPlaneRestartingReason, fmt.Sprintf("Control plane restarting, as is expected of %s: %s. Waiting up to %d minutes; after that it counts as not available",
		english.Plural(int(v.Replicas()), "host", ""), causes, int(facts.RestartTime(v.Replicas()).Minutes())))
}

// untilRestartCounts is after what time a planned restart has lasted too long; zero: never.
func (v *View) untilRestartCounts() time.Duration {
	return soonest(v.restartLeft(controlplanev1.AvailableCondition), v.restartLeft(controlplanev1.ControlPlaneComponentsHealthyCondition),
		v.restartLeft(controlplanev1.EtcdClusterHealthyCondition))
}
