package facts

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/openshift"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
)

// Runs returns the release that the installed cluster completed last; false if it is unknown.
func (f *Facts) Runs() (semver.Version, bool) { return f.release(f.Workload.OpenShiftVersion) }

// WantedVersion returns the release in the spec; false if it is invalid.
func (f *Facts) WantedVersion() (semver.Version, bool) {
	return f.release(f.ControlPlane.Spec.DistributionVersion)
}

// Target returns the release that the Machines of an installed cluster should have. It is that in the spec,
// unless the cluster runs, or works towards, a newer one. It is false if it is unknown.
func (f *Facts) Target() (semver.Version, bool) {
	if !f.Installed() {
		return semver.Version{}, false
	}
	known := []string{f.ControlPlane.Spec.DistributionVersion, f.Workload.OpenShiftVersion, f.Workload.Upgrading}
	if f.Workload.OpenShiftVersion == "" { // the cluster does not answer now
		known = []string{f.ControlPlane.Spec.DistributionVersion, f.ControlPlane.Status.DistributionVersion, f.ControlPlane.Status.Upgrade.DistributionVersion}
	}
	target, found := semver.Version{}, false
	for _, version := range known {
		if v, ok := f.release(version); ok && (!found || v.GT(target)) {
			target, found = v, true
		}
	}
	return target, found
}

// UpgradingTo returns the release that the cluster works towards, or that is requested and may start at any
// time; "" if there is none.
func (f *Facts) UpgradingTo() string {
	if r := f.Workload.Rollout; f.Workload.Upgrading == "" && r != nil && r.Pending && r.Refused == "" {
		return cmp.Or(r.Requested.Version, r.Requested.Image)
	}
	return f.Workload.Upgrading
}

// ReleaseOf returns the release of the Node of a Machine, with leading v; "" if it is unknown. It is known
// while the cluster is being upgraded or workers lag behind. Nodes are upgraded one after the other.
func (f *Facts) ReleaseOf(m *clusterv1.Machine) string {
	for _, n := range f.Workload.Nodes {
		if n.Name == m.Status.NodeRef.Name && n.Release != "" {
			return "v" + n.Release
		}
	}
	return ""
}

// LaggingWorkers returns our workers with an older release than their MachineDeployment, or their MachineSet,
// requires.
func (f *Facts) LaggingWorkers() []*clusterv1.Machine {
	if !f.Installed() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(f.Workers), func(m *clusterv1.Machine) bool {
		version, given := f.release(m.Spec.Version)
		wanted, desired := f.release(f.WorkerVersion(m))
		return !given || !desired || version.GTE(wanted) || !staysOurs(m) || !m.Status.NodeRef.IsDefined()
	})
}

// staysOurs reports whether a worker is ours, and is not being deleted.
func staysOurs(m *clusterv1.Machine) bool {
	return m.Spec.Bootstrap.ConfigRef.Kind == workers.ConfigKind && m.DeletionTimestamp.IsZero()
}

// NeedsReleases reports whether the releases of worker Nodes are needed although the cluster is not being
// upgraded any more. This is so for a worker that lags behind, or that Cluster API updates in place.
func (f *Facts) NeedsReleases() bool {
	return len(f.LaggingWorkers()) > 0 || slices.ContainsFunc(f.Workers, UpdatesInPlace)
}

// NeedsPools reports whether the MachineConfigPools of the cluster are needed although it is not being
// upgraded any more. This is so while workers lag behind, or did so at the last inspection.
func (f *Facts) NeedsPools() bool {
	before := &f.ControlPlane.Status
	return f.Installed() && (before.Upgrade.DistributionVersion != "" || len(before.PoolsBehind) > 0 || f.NeedsReleases())
}

// PoolsMatter reports whether the status of pools is reported.
func (f *Facts) PoolsMatter() bool { return f.Workload.Upgrading != "" || f.NeedsPools() }

// UpdatesInPlace reports whether Cluster API updates a Machine in place.
func UpdatesInPlace(m *clusterv1.Machine) bool {
	_, updating := m.Annotations[clusterv1.UpdateInProgressAnnotation]
	return updating
}

// WorkersRollOut reports whether Cluster API brings workers to another version, one after the other.
func (f *Facts) WorkersRollOut() bool {
	begun := func(m *clusterv1.Machine) bool { return UpdatesInPlace(m) && staysOurs(m) }
	return slices.ContainsFunc(f.Workers, begun) || slices.ContainsFunc(f.LaggingWorkers(), func(m *clusterv1.Machine) bool {
		owner := metav1.GetControllerOf(m)
		return owner != nil && f.Sets[owner.UID].RollsOut
	})
}

// ClusterFollows reports whether the cluster runs, or works towards, a release or a newer one.
func (f *Facts) ClusterFollows(version string) bool {
	wanted, given := f.release(version)
	for _, of := range []string{f.Workload.OpenShiftVersion, f.Workload.Upgrading} {
		if v, ok := f.release(of); ok && given && v.GTE(wanted) {
			return true
		}
	}
	return false
}

// Follows reports whether the Node of a Machine runs a release, or a newer one.
func (f *Facts) Follows(m *clusterv1.Machine, version string) bool {
	runs, known := f.release(f.ReleaseOf(m))
	wanted, given := f.release(version)
	return known && given && runs.GTE(wanted)
}

// WorkerVersion returns the desired version of a worker; "" if none is set.
func (f *Facts) WorkerVersion(m *clusterv1.Machine) string {
	if owner := metav1.GetControllerOf(m); owner != nil {
		return f.Sets[owner.UID].Version
	}
	return ""
}

func (f *Facts) release(version string) (semver.Version, bool) {
	v, err := openshift.ParseVersion(version)
	return v, err == nil
}
