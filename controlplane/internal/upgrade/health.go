package upgrade

import (
	"slices"

	"github.com/blang/semver/v4"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// intolerable are the ClusterOperators that block each upgrade. The upgrade uses them to restart the control
// plane hosts one by one. With an etcd member missing before, the first restart could lose quorum. The schema
// of the field refuses them, too.
var intolerable = []string{"etcd", "kube-apiserver", "machine-config"}

// unhealthy returns the ClusterOperators and MachineConfigPools that block an upgrade.
func unhealthy(f *facts.Facts, wanted semver.Version, seen *workload.ClusterVersion) *decision.Blocker {
	var blockers []string
	advice := ""
	for _, a := range seen.Unhealthy {
		if !tolerates(f, a) {
			blockers = append(blockers, a.Message)
		}
		if !tolerates(f, a) && tolerable(a) {
			advice = ". If v" + wanted.String() + " fixes the operator, add its name to spec.upgrade.toleratedOperators"
		}
	}
	if len(blockers) == 0 {
		return nil
	}
	return unwatched(controlplanev1.WaitingForHealthyClusterReason, "v%s is not requested until the cluster is healthy: %s%s", wanted,
		bound.Join(blockers, ""), advice)
}

// tolerated returns the problems that do not block an upgrade.
func tolerated(f *facts.Facts, seen *workload.ClusterVersion) []string {
	var messages []string
	for _, a := range seen.Unhealthy {
		if tolerates(f, a) {
			messages = append(messages, a.Message)
		}
	}
	return messages
}

func tolerates(f *facts.Facts, a workload.Ailment) bool {
	return tolerable(a) && slices.Contains(f.ControlPlane.Spec.Upgrade.ToleratedOperators, a.Operator)
}

func tolerable(a workload.Ailment) bool {
	return a.Operator != "" && !slices.Contains(intolerable, a.Operator)
}
