package health

import (
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/rollout"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// PlannedRestarts returns the last known changes for which the API server or control-plane hosts restart. An
// upgrade is also read from the status: it is known after a restart of the manager, while the cluster does
// not answer.
func (v *View) PlannedRestarts() []string {
	planned := slices.Clone(v.Workload.Restarts)
	if to := rollout.Status(v.Facts).DistributionVersion; to != "" {
		planned = append([]string{"the cluster is being upgraded to " + to}, planned...)
	}
	return planned
}

// RestartLeft returns the time that a planned restart still explains an unavailable control plane; zero: no
// restart explains it. The control plane must have served before: see condition.UnknownLeft.
func (v *View) RestartLeft(conditionType string) time.Duration {
	hosts, before := v.Replicas(), conditions.Get(v.ControlPlane, conditionType)
	switch {
	case before == nil, !v.Installed(), v.Healthy(), v.Known() && hosts > 1: // the other hosts serve meanwhile
		return 0
	case !v.restartIsKnown(before):
		return 0
	}
	return condition.UnknownLeft(before, workload.RestartTime(hosts), v.Now)
}

// restartIsKnown reports whether a restart is planned, or was planned when the condition was reported. A reported
// restart counts until the control plane is healthy. The manager may have restarted since. ClusterOperators recover some
// time after the cluster reports the end of the upgrade or of the rollout. Each kind is also watched
// separately, so that the end may arrive before the recovery of the operators. A reported restart does not explain a
// cluster that answers and whose operators cannot be read.
func (v *View) restartIsKnown(before *metav1.Condition) bool {
	reported := before.Reason == controlplanev1.ControlPlaneRestartingReason && (!v.Workload.Connected || v.Known())
	return reported || len(v.PlannedRestarts()) > 0
}

// Restarting returns the condition during a planned restart.
func (v *View) Restarting(conditionType string) metav1.Condition {
	planned := v.PlannedRestarts()
	switch {
	case len(planned) == 0 && !v.Known(): // reported before the manager restarted
		return *conditions.Get(v.ControlPlane, conditionType)
	case len(planned) == 0:
		planned = []string{"the planned restart has ended, ClusterOperators recover"}
	}
	causes := bound.Join(planned, "")
	if v.Known() {
		causes += "; " + bound.Join(v.Workload.Unhealthy, "")
	}
	return condition.Unknown(conditionType, controlplanev1.ControlPlaneRestartingReason, fmt.Sprintf("Control plane restarting, as is "+
		"expected of %s: %s. Waiting up to %d minutes; after that it counts as not available",
		english.Plural(int(v.Replicas()), "host", ""), causes, int(workload.RestartTime(v.Replicas()).Minutes())))
}

// UntilRestartCounts returns the time until a planned restart counts as a failure; zero: never.
func (v *View) UntilRestartCounts() time.Duration {
	return condition.Soonest(
		v.RestartLeft(controlplanev1.AvailableCondition),
		v.RestartLeft(controlplanev1.ControlPlaneComponentsHealthyCondition),
		v.RestartLeft(controlplanev1.EtcdClusterHealthyCondition),
	)
}
