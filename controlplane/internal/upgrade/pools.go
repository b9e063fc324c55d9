package upgrade

import (
	"slices"

	"github.com/blang/semver/v4"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// longestChain is the number of minor versions by which the kubelets of paused workers may be older than the API servers. The
// cluster permits it from an even minor version of OpenShift 4, and one from an odd one (kube-apiserver operator).
const longestChain = 2

// longChain blocks a chain that the cluster would refuse before its end. Its workers would stay paused.
func longChain(f *facts.Facts, wanted semver.Version) *decision.Blocker {
	runs, _ := versioning.Runs(f)
	end, _ := versions.ParseKubernetes(f.Cluster.Spec.Topology.Version)
	now, err := versions.ParseKubernetes(versioning.KubernetesVersion(f))
	if err == nil && end.Minor <= now.Minor+longestChain && runs.Major == 4 && runs.Minor%2 == 0 {
		return nil
	}
	return watched(controlplanev1.TopologySkipsWorkersReason, "v%s is not requested: the topology of Cluster %s is upgraded from %s to %s, "+
		"and workers can be paused only over two minor versions, from an even one of OpenShift 4. Add the annotation "+
		"unsafe.topology.cluster.x-k8s.io/disable-update-version-check to the Cluster, and set spec.topology.version to the Kubernetes "+
		"version of v%s first", wanted, f.Cluster.Name, versioning.KubernetesVersion(f), f.Cluster.Spec.Topology.Version, wanted)
}

// pause returns the pause of the pools of workers before the first release of a chain. A pool must be updated: it keeps its
// configuration until the last release.
func pause(f *facts.Facts, wanted semver.Version) (*workload.PoolPause, *decision.Blocker) {
	var pending []string
	for _, pool := range f.Workload.Pools {
		if (pool.Behind || pool.Degraded != "") && slices.Contains(f.Workload.UnpausedPools, pool.Name) {
			pending = append(pending, pool.Name)
		}
	}
	if len(pending) > 0 {
		return nil, watched(controlplanev1.UpgradeInProgressReason, "v%s is not requested yet: these MachineConfigPools are paused when "+
			"they are updated and not degraded: %s", wanted, bound.List(pending))
	}
	pools := f.Workload.UnpausedPools
	return &workload.PoolPause{Pools: pools, Until: f.Cluster.Spec.Topology.Version}, watched(controlplanev1.UpgradeInProgressReason,
		"v%s is not requested yet: pausing the MachineConfigPools of workers until the control plane has %s: %s", wanted,
		f.Cluster.Spec.Topology.Version, bound.List(pools))
}

// PoolsToResume returns the MachineConfigPools whose pause by this provider is over. A pool that the user resumed gives up its
// marks: a later pause is that of the user.
func PoolsToResume(f *facts.Facts) []string {
	if !f.Installed() || f.ClusterDeleting() || !f.Workload.Known() || !f.Workload.PoolsKnown {
		return nil
	}
	var names []string
	for _, pool := range f.Workload.Pools {
		if pool.PausedUntil != "" && (!pool.Paused || !versioning.PausesWorkerPools(f) || versioning.ChainEnds(f, pool.PausedUntil)) {
			names = append(names, pool.Name)
		}
	}
	return names
}
