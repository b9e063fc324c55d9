// Package versioning concludes from the facts of a reconcile which releases of OpenShift and versions of Kubernetes a
// cluster has. It covers the present and the desired versions of the cluster, its Machines and its kubelets. It has no
// client.
package versioning

import (
	"cmp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// Runs returns the release that the installed cluster completed last; false if it is unknown.
func Runs(f *facts.Facts) (semver.Version, bool) { return release(f.Workload.OpenShiftVersion) }

// WantedVersion returns the release in the spec; false if it is invalid.
func WantedVersion(f *facts.Facts) (semver.Version, bool) {
	return release(f.ControlPlane.Spec.DistributionVersion)
}

// Target returns the release that the Machines of an installed cluster should have. It is that in the spec,
// unless the cluster runs, or works towards, a newer one. It is false if it is unknown.
func Target(f *facts.Facts) (semver.Version, bool) {
	if !f.Installed() {
		return semver.Version{}, false
	}
	known := []string{f.ControlPlane.Spec.DistributionVersion, f.Workload.OpenShiftVersion, f.Workload.Upgrading}
	if f.Workload.OpenShiftVersion == "" { // the cluster does not answer now
		last := &f.ControlPlane.Status
		known = []string{f.ControlPlane.Spec.DistributionVersion, last.DistributionVersion, last.Upgrade.DistributionVersion}
	}
	target, found := semver.Version{}, false
	for _, version := range known {
		if v, ok := release(version); ok && (!found || v.GT(target)) {
			target, found = v, true
		}
	}
	return target, found
}

// AwaitsRelease reports whether the spec has a newer release than the installed cluster has completed.
func AwaitsRelease(f *facts.Facts) bool {
	runs, known := release(cmp.Or(f.Workload.OpenShiftVersion, f.ControlPlane.Status.DistributionVersion))
	wanted, given := WantedVersion(f)
	return f.Installed() && known && given && wanted.GT(runs)
}

// UpgradingTo returns the release that the cluster works towards, or that is requested and may start at any
// time; "" if there is none.
func UpgradingTo(f *facts.Facts) string {
	if r := f.Workload.Rollout; f.Workload.Upgrading == "" && r != nil && r.Pending && r.Refused == "" {
		return cmp.Or(r.Requested.Version, r.Requested.Image)
	}
	return f.Workload.Upgrading
}

// KubernetesVersion returns the Kubernetes version that all API servers of the installed cluster run, with leading v. While
// they are updated, or the cluster cannot be read, it is the last known one. On a hub to which the cluster was moved that
// is the lowest of the control-plane Machines. It is "" if none is known.
//
// If only the build metadata differ from those of the spec, it is the version of the spec. Cluster API otherwise counts the
// control plane as being upgraded, creates no workers, and refuses the edit that corrects the metadata.
func KubernetesVersion(f *facts.Facts) string {
	if !f.Installed() {
		return ""
	}
	if now := cmp.Or(f.Workload.Kubernetes(), f.ControlPlane.Status.Version); now != "" {
		if wanted := WantedKubernetes(f); strings.Contains(wanted, "+") && versions.SameKubernetes(now, wanted) {
			return wanted
		}
		return now
	}
	lowest := ""
	for _, m := range f.Machines {
		if _, err := versions.ParseKubernetes(m.Spec.Version); err == nil && (lowest == "" || !versions.AtLeast(m.Spec.Version, lowest)) {
			lowest = m.Spec.Version
		}
	}
	return lowest
}

// TopologySkipsWorkers reports whether the topology of the Cluster upgrades the control plane by several minor versions before
// its MachineDeployments. It does not count if all MachineConfigPools of workers are known to be paused.
func TopologySkipsWorkers(f *facts.Facts) bool {
	return skipsWorkers(f) && (!f.Workload.PoolsKnown || len(f.Workload.UnpausedPools) > 0)
}

// skipsWorkers reports whether MachineDeployments of the topology do not get the version that the control plane gets now.
func skipsWorkers(f *facts.Facts) bool { return chained(f) && !workersGetStep(f) }

// workersGetStep reports whether the MachineDeployments of the topology get the version that the control plane gets now, or have
// it. Cluster API 1.14 and newer reports its plan for them in the status of the Cluster, without the versions that all of them
// have. Older versions of Cluster API report no plan.
func workersGetStep(f *facts.Facts) bool {
	step := WantedKubernetes(f)
	isStep := func(planned clusterv1.StatusUpgradePlanVersion) bool { return planned.Version == step }
	if status := f.Cluster.Status.Workers; status != nil && slices.ContainsFunc(status.UpgradePlan, isStep) {
		return true
	}
	following := map[string]bool{}
	for _, set := range f.Sets {
		following[set.TopologyName] = versions.AtLeast(set.Version, step)
	}
	return !slices.ContainsFunc(f.Cluster.Spec.Topology.Workers.MachineDeployments, func(d clusterv1.MachineDeploymentTopology) bool {
		return !following[d.Name]
	})
}

// PausesWorkerPools reports whether the user lets this provider pause the MachineConfigPools of workers.
func PausesWorkerPools(f *facts.Facts) bool {
	return f.ControlPlane.Spec.Upgrade.PauseWorkerPools == controlplanev1.PauseWorkerPoolsDuringChain
}

// ChainEnds reports whether a pause of pools until a Kubernetes version is over. Either the cluster has completed a release
// with that version, or no newer release is requested any more. If the MachineDeployments get the present version, Cluster API
// waits for the kubelets of the workers: the pause is over, too.
func ChainEnds(f *facts.Facts, until string) bool {
	switch {
	case f.Workload.Upgrading != "":
		return false
	case chained(f) && workersGetStep(f):
		return true
	}
	requested := chained(f) || AwaitsRelease(f) || RequiredKubernetes(f) != KubernetesVersion(f)
	return !requested || versions.AtLeast(KubernetesVersion(f), until)
}

// chained reports whether the topology of the Cluster has a later minor version than the control plane gets now.
func chained(f *facts.Facts) bool {
	if f.Cluster == nil || len(f.Cluster.Spec.Topology.Workers.MachineDeployments) == 0 {
		return false
	}
	end, err := versions.ParseKubernetes(f.Cluster.Spec.Topology.Version)
	step, stepErr := versions.ParseKubernetes(WantedKubernetes(f))
	return err == nil && stepErr == nil && end.Minor > step.Minor
}

// WantedKubernetes returns the Kubernetes version in the spec, with leading v; "" if it is omitted or invalid.
func WantedKubernetes(f *facts.Facts) string {
	if _, err := versions.ParseKubernetes(f.ControlPlane.Spec.Version); err != nil {
		return ""
	}
	return "v" + strings.TrimPrefix(f.ControlPlane.Spec.Version, "v")
}

// RequiredKubernetes returns the Kubernetes version that the control-plane Machines of an installed cluster should have.
// It is that of the API servers, or a newer one in the spec. It is "" if it is unknown.
func RequiredKubernetes(f *facts.Facts) string {
	runs, wanted := KubernetesVersion(f), WantedKubernetes(f)
	if runs != "" && wanted != "" && !versions.AtLeast(runs, wanted) {
		return wanted
	}
	return runs
}

// KubeletVersion returns the version that the kubelet of a Machine reports; "" if it is unknown.
func KubeletVersion(f *facts.Facts, m *clusterv1.Machine) string {
	if !m.Status.NodeRef.IsDefined() {
		return ""
	}
	for i := range f.Workload.Nodes {
		if f.Workload.Nodes[i].Name == m.Status.NodeRef.Name {
			return f.Workload.Nodes[i].KubeletVersion
		}
	}
	return ""
}

// MachineVersion returns the version of a control-plane Machine: that of its kubelet. Before it has a Node, it is the
// version that it will have. It is "" if it is unknown. A nil Machine stands for the next one.
func MachineVersion(f *facts.Facts, m *clusterv1.Machine) string {
	if m != nil && m.Status.NodeRef.IsDefined() {
		return cmp.Or(KubeletVersion(f, m), m.Spec.Version)
	}
	return cmp.Or(KubernetesVersion(f), WantedKubernetes(f))
}

// LaggingWorkers returns our workers with an older version than their MachineDeployment, or their MachineSet,
// requires.
func LaggingWorkers(f *facts.Facts) []*clusterv1.Machine {
	return slices.DeleteFunc(slices.Clone(f.Workers), func(m *clusterv1.Machine) bool { return !lags(f, m) })
}

func lags(f *facts.Facts, m *clusterv1.Machine) bool {
	wanted := WorkerVersion(f, m)
	_, err := versions.ParseKubernetes(wanted)
	otherMetadata := m.Spec.Version != wanted && versions.SameKubernetes(m.Spec.Version, wanted) // Cluster API compares literally
	return f.Installed() && staysOurs(m) && m.Status.NodeRef.IsDefined() && err == nil &&
		(otherMetadata || !versions.AtLeast(m.Spec.Version, wanted))
}

// staysOurs reports whether a worker is ours, and is not being deleted.
func staysOurs(m *clusterv1.Machine) bool {
	return m.Spec.Bootstrap.ConfigRef.Kind == workers.ConfigKind && m.DeletionTimestamp.IsZero()
}

// FollowedVersion returns the version that a worker must get because of its kubelet; "" if none. OpenShift updates workers
// in place. A worker whose MachineDeployment, or MachineSet, has no version gets that of its kubelet: from 1.14 on Cluster
// API compares them literally. Otherwise it gets the version of the MachineDeployment once its kubelet has that version, or
// a newer one. A topology propagates no later version before its workers have the current one. The worker does not get
// the version earlier: Cluster API counts a Machine whose version differs from that of its MachineDeployment as being
// upgraded.
func FollowedVersion(f *facts.Facts, m *clusterv1.Machine) string {
	kubelet, wanted := KubeletVersion(f, m), WorkerVersion(f, m)
	switch {
	case !f.Installed() || !staysOurs(m) || kubelet == "":
		return ""
	case lags(f, m) && Follows(f, m, wanted):
		return wanted
	case wanted == "" && inKnownSet(f, m) && m.Spec.Version != kubelet:
		return kubelet
	}
	return ""
}

// NeedsPools reports whether the MachineConfigPools of the cluster are needed although it is not being
// upgraded. This is so while workers lag behind, or did so at the last inspection, and before a topology is upgraded by
// several minor versions. Pools that this provider may have paused must be found after a move to another hub, too, which has
// no status.
func NeedsPools(f *facts.Facts) bool {
	return f.Installed() && (PausesWorkerPools(f) || followsPools(f))
}

func followsPools(f *facts.Facts) bool {
	before := &f.ControlPlane.Status
	paused := func(pool workload.Pool) bool { return pool.PausedUntil != "" }
	return f.Installed() && (before.Upgrade.DistributionVersion != "" || len(before.PoolsBehind) > 0 || len(before.PausedPools) > 0 ||
		skipsWorkers(f) || len(LaggingWorkers(f)) > 0 || slices.ContainsFunc(f.Workers, UpdatesInPlace) ||
		slices.ContainsFunc(f.Workload.Pools, paused))
}

// PoolsMatter reports whether the status of pools is reported.
func PoolsMatter(f *facts.Facts) bool { return f.Workload.Upgrading != "" || followsPools(f) }

// UpdatesInPlace reports whether Cluster API updates a Machine in place.
func UpdatesInPlace(m *clusterv1.Machine) bool {
	_, updating := m.Annotations[clusterv1.UpdateInProgressAnnotation]
	return updating
}

// WorkersRollOut reports whether Cluster API brings workers to another version, one after the other.
func WorkersRollOut(f *facts.Facts) bool {
	begun := func(m *clusterv1.Machine) bool { return UpdatesInPlace(m) && staysOurs(m) }
	return slices.ContainsFunc(f.Workers, begun) || slices.ContainsFunc(LaggingWorkers(f), func(m *clusterv1.Machine) bool {
		owner := metav1.GetControllerOf(m)
		return owner != nil && f.Sets[owner.UID].RollsOut
	})
}

// Follows reports whether the kubelet of a Machine has a Kubernetes version, or a newer one.
func Follows(f *facts.Facts, m *clusterv1.Machine, version string) bool {
	return versions.AtLeast(KubeletVersion(f, m), version)
}

// inKnownSet reports whether the desired state of the MachineSet of a Machine is known.
func inKnownSet(f *facts.Facts, m *clusterv1.Machine) bool {
	owner := metav1.GetControllerOf(m)
	if owner == nil {
		return false
	}
	_, known := f.Sets[owner.UID]
	return known
}

// WorkerVersion returns the desired version of a worker; "" if none is set.
func WorkerVersion(f *facts.Facts, m *clusterv1.Machine) string {
	if owner := metav1.GetControllerOf(m); owner != nil {
		return f.Sets[owner.UID].Version
	}
	return ""
}

// release returns the parsed version of a release; false if the version is invalid.
func release(version string) (semver.Version, bool) {
	v, err := versions.ParseRelease(version)
	return v, err == nil
}
