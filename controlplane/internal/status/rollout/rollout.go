// Package rollout reports the progress of an upgrade of a cluster, and the MachineConfigPools that block or follow it. It has no client,
// and no clock.
package rollout

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// complete finds the progress of an upgrade in the message of the cluster version operator: "Working towards
// 4.20.1: 312 of 903 done (34% complete)".
var complete = regexp.MustCompile(`\((\d{1,3})% complete\)`)

// Status returns the progress of the cluster's upgrade. While the API server does not answer it
// returns the last known progress: hosts restart, and a single host includes the only API server.
func Status(f *facts.Facts) controlplanev1.UpgradeStatus {
	before := f.ControlPlane.Status.Upgrade
	switch {
	case !f.Installed() || f.Workload.OpenShiftVersion == "":
		return before
	case f.Workload.Upgrading == "":
		return controlplanev1.UpgradeStatus{}
	}
	now := controlplanev1.UpgradeStatus{DistributionVersion: f.Workload.Upgrading}
	if now.DistributionVersion == before.DistributionVersion {
		now.Percentage = before.Percentage // not each message has a percentage
	}
	if r := f.Workload.Rollout; r != nil {
		if found := complete.FindStringSubmatch(r.Progress); found != nil {
			percentage, _ := strconv.Atoi(found[1])                        // digits
			now.Percentage = ptr.To(int32(min(percentage, 100) / 10 * 10)) //nolint:gosec // up to 100; full tens save writes
		}
	}
	return now
}

// Progress returns the release to which the cluster is being upgraded, and the progress; empty without
// upgrade.
func Progress(f *facts.Facts) string {
	under := Status(f)
	if under.DistributionVersion == "" {
		return ""
	}
	message := "upgrading the cluster to v" + under.DistributionVersion
	if f.Workload.OpenShiftVersion == "" {
		message += ", whose API server does not answer now"
		if f.Replicas() == 1 {
			message += ", as expected while its only host restarts"
		}
		return message
	}
	message = fmt.Sprintf("upgrading the cluster from v%s to v%s", f.Workload.OpenShiftVersion, under.DistributionVersion)
	if r := f.Workload.Rollout; r != nil && r.Progress != "" {
		message += ": " + r.Progress
	}
	return message
}

// MaxPools is the maximum number of pools in the status.
const MaxPools = 32

// PoolsBehind returns the worker pools that lag behind the control plane, or the last known ones while they
// cannot be read.
func PoolsBehind(f *facts.Facts) []string {
	switch {
	case !versioning.PoolsMatter(f):
		return nil
	case !f.Workload.PoolsKnown:
		return f.ControlPlane.Status.PoolsBehind
	}
	var behind []string
	for _, pool := range f.Workload.Pools {
		if pool.Behind && !pool.ControlPlane() && len(behind) < MaxPools {
			behind = append(behind, pool.Name)
		}
	}
	return behind
}

// PausedPools returns the pools that this provider pauses, or the last known ones while they cannot be read.
func PausedPools(f *facts.Facts) []string {
	switch {
	case !versioning.PoolsMatter(f):
		return nil
	case !f.Workload.PoolsKnown:
		return f.ControlPlane.Status.PausedPools
	}
	var paused []string
	for _, pool := range f.Workload.Pools {
		if pool.PausedUntil != "" && len(paused) < MaxPools {
			paused = append(paused, pool.Name)
		}
	}
	return paused
}

// WaitingPools names the MachineConfigPools that block an upgrade, or whose Nodes lag behind, and the user
// action; empty without such pools.
func WaitingPools(f *facts.Facts) string {
	var texts []string
	for _, pool := range f.Workload.Pools {
		if words := poolText(f, &pool); versioning.PoolsMatter(f) && words != "" {
			texts = append(texts, words)
		}
	}
	return bound.Join(texts, "MachineConfigPool")
}

// PoolReason returns the reason of a condition that names such pools. A degraded pool needs a user action. A
// paused pool is usually paused on purpose. Empty: no such pool is named.
func PoolReason(f *facts.Facts) string {
	reason := ""
	for i := range f.Workload.Pools {
		switch pool := &f.Workload.Pools[i]; {
		case !versioning.PoolsMatter(f) || poolText(f, pool) == "":
		case pool.Degraded != "":
			return controlplanev1.MachineConfigPoolDegradedReason
		case pool.Paused && pool.PausedUntil == "":
			reason = controlplanev1.MachineConfigPoolPausedReason
		}
	}
	return reason
}

// poolText returns the text for one pool. A paused worker pool is named while its Nodes lag behind.
func poolText(f *facts.Facts, pool *workload.Pool) string {
	under := f.Workload.Upgrading != ""
	name, unpause := "MachineConfigPool "+pool.Name, fmt.Sprintf(
		`oc patch machineconfigpool %s --type merge --patch '{"spec":{"paused":false}}'`, pool.Name,
	)
	switch {
	case pool.Degraded != "":
		return fmt.Sprintf(
			"%s is degraded, and no upgrade begins or ends as long as any is (%s): see oc describe machineconfigpool %s",
			name,
			pool.Degraded,
			pool.Name,
		)
	case pool.Paused && pool.ControlPlane() && under:
		return fmt.Sprintf("%s is paused, so that the upgrade does not end: %s", name, unpause)
	case pool.ControlPlane():
		return ""
	case pool.PausedUntil != "":
		return fmt.Sprintf("%s is paused by this provider since %s, until the control plane has completed a release with Kubernetes %s. "+
			"It is resumed automatically", name, pool.PausedSince.UTC().Format(time.RFC3339), pool.PausedUntil)
	case pool.Paused && (under || pool.Behind):
		return fmt.Sprintf("%s is paused, and its Nodes keep their release until it is not any more: %s", name, unpause)
	case pool.Behind && !under:
		return fmt.Sprintf("the Nodes of %s follow, see oc get machineconfigpool %s", name, pool.Name)
	}
	return ""
}

// NotBegun returns the condition of a control plane whose requested release is not rolled out. cause is the blocker, or
// refers to it. The message also names pools that block an upgrade.
func NotBegun(f *facts.Facts, cause string) metav1.Condition {
	message := "release " + f.ControlPlane.Spec.DistributionVersion + " is not rolled out: " + cause
	if pools := WaitingPools(f); pools != "" {
		message += "; " + pools
	}
	return condition.False(controlplanev1.RollingOutCondition, cmp.Or(PoolReason(f), clusterv1.NotRollingOutReason), message)
}

// Finished returns the condition of a control plane that is done: the message names workers that are not.
func Finished(f *facts.Facts) metav1.Condition {
	const t = controlplanev1.RollingOutCondition
	before := conditions.Get(f.ControlPlane, t)
	if versioning.PoolsMatter(f) && !f.Workload.PoolsKnown && before != nil && before.Status == metav1.ConditionFalse {
		return *before // the last known condition
	}
	return condition.False(t, cmp.Or(PoolReason(f), clusterv1.NotRollingOutReason), WaitingPools(f))
}
