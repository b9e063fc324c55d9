package facts

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/openshift"
)

// Rollout is what a cluster tells of its release while it works towards another one, was asked for one that it has not begun, or fails.
type Rollout struct {
	// Requested is what was asked for last, Unseen is true until the cluster has looked at it. Pending is true as long
	// as it is not what the cluster runs, or works towards.
	Requested       Update
	Unseen, Pending bool
	// Progress says how far the release in Upgrading is, and what it waits for; Failing what is wrong with it; Refused
	// why what was asked for is not begun. For people.
	Progress, Failing, Refused string
}

// Update is a release that a cluster is asked for. What is left empty follows from the update graph.
type Update struct {
	// Version is that of the release, without leading v, Image its image.
	Version, Image string
	// Force is true to check neither preconditions nor signature.
	Force bool
}

// ClusterVersion is what a cluster says of its release and of those that it could be brought to, with what should be
// well before: read for an upgrade.
type ClusterVersion struct {
	// ResourceVersion is that of the object.
	ResourceVersion string
	// Runs and Upgrading are the release that was completed last, and the one that is being rolled out over it. Former
	// are those that it was asked for, and taken off.
	Runs, Upgrading string
	Former          []string
	Channel         string
	// Requested is what was asked for last; Ours is true when we wrote it.
	Requested Update
	Ours      bool
	// Offers are the releases of the update graph.
	Offers []Offer
	// NoOffers states, for people, why the cluster has no update graph; empty: it has one.
	NoOffers string
	// Gates are what an administrator is asked to check before an upgrade from the minor version that runs.
	Gates []Gate
	// Images are those of the releases in its history.
	Images []string
	// Unhealthy are the ClusterOperators and MachineConfigPools that are not healthy.
	Unhealthy []Ailment
}

// Ailment is a reason not to begin an upgrade: a ClusterOperator or MachineConfigPool that is not healthy.
type Ailment struct {
	// Operator is the name of the ClusterOperator; empty: it is a MachineConfigPool.
	Operator string
	// Message is for people.
	Message string
}

// Offer is a release that the update graph has for a cluster. It is recommended where it has no risks.
type Offer struct {
	Version, Image string
	Risks          []Risk
}

// Risk is why an update is not recommended.
type Risk struct{ Name, Message string }

// Gate is what an administrator is asked to check.
type Gate struct {
	Name, Message string
	// Acknowledged is true when somebody said that it is checked.
	Acknowledged bool
}

// UpdateRequest is what is written into a cluster for an upgrade: what is empty is not written.
type UpdateRequest struct {
	// ResourceVersion is that of the ClusterVersion as it was read.
	ResourceVersion string
	Channel         string
	Acknowledge     []string
	Update          *Update
	// Tolerated are the ailments, for people, in spite of which the update is requested.
	Tolerated []string
	// Withdraw takes back what was asked for.
	Withdraw bool
}

// Empty reports whether nothing is written.
func (r *UpdateRequest) Empty() bool {
	return r.Channel == "" && len(r.Acknowledge) == 0 && r.Update == nil && !r.Withdraw
}

// Runs is the release that the installed cluster completed last; false when it is not known.
func (f *Facts) Runs() (semver.Version, bool) { return f.release(f.Workload.OpenShiftVersion) }

// WantedVersion is the release that the spec asks for; false when it is none.
func (f *Facts) WantedVersion() (semver.Version, bool) { return f.release(f.ControlPlane.Spec.Version) }

// Target is the release that the Machines of an installed cluster are to have: that which the spec asks for, unless the
// cluster runs, or is being brought to, a newer one. False when it is not known.
func (f *Facts) Target() (semver.Version, bool) {
	if !f.Installed() {
		return semver.Version{}, false
	}
	known := []string{f.ControlPlane.Spec.Version, f.Workload.OpenShiftVersion, f.Workload.Upgrading}
	if f.Workload.OpenShiftVersion == "" { // the cluster cannot be asked now
		known = []string{f.ControlPlane.Spec.Version, f.ControlPlane.Status.Version, f.ControlPlane.Status.Upgrade.Version}
	}
	target, found := semver.Version{}, false
	for _, version := range known {
		if v, ok := f.release(version); ok && (!found || v.GT(target)) {
			target, found = v, true
		}
	}
	return target, found
}

// UpgradingTo is the release that the cluster is being brought to, or was asked for and may begin at any time; empty: none.
func (f *Facts) UpgradingTo() string {
	if r := f.Workload.Rollout; f.Workload.Upgrading == "" && r != nil && r.Pending && r.Refused == "" {
		return cmp.Or(r.Requested.Version, r.Requested.Image)
	}
	return f.Workload.Upgrading
}

// ReleaseOf is the release that the Node of a Machine runs, with leading v, while the cluster is being upgraded or
// workers lag behind; empty: it is not known. Nodes are brought to it one after the other.
func (f *Facts) ReleaseOf(m *clusterv1.Machine) string {
	for _, n := range f.Workload.Nodes {
		if n.Name == m.Status.NodeRef.Name && n.Release != "" {
			return "v" + n.Release
		}
	}
	return ""
}

// LaggingWorkers are the workers of ours that bear an older release than their MachineDeployment, or their MachineSet, asks for.
func (f *Facts) LaggingWorkers() []*clusterv1.Machine {
	if !f.Installed() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(f.Workers), func(m *clusterv1.Machine) bool {
		version, given := f.release(m.Spec.Version)
		wanted, asked := f.release(f.WorkerVersion(m))
		return !given || !asked || version.GTE(wanted) || !staysOurs(m) || !m.Status.NodeRef.IsDefined()
	})
}

// staysOurs reports whether a worker is of ours, and is not being deleted.
func staysOurs(m *clusterv1.Machine) bool {
	return m.Spec.Bootstrap.ConfigRef.Kind == ConfigKind && m.DeletionTimestamp.IsZero()
}

// NeedsReleases reports whether it matters which releases the Nodes of workers run although the cluster is not being
// upgraded any more: of one that lags behind, or that Cluster API updates in place.
func (f *Facts) NeedsReleases() bool {
	return len(f.LaggingWorkers()) > 0 || slices.ContainsFunc(f.Workers, UpdatesInPlace)
}

// NeedsPools reports whether it matters how the MachineConfigPools of the cluster are although it is not being upgraded
// any more: its workers lag behind, or did so when that was seen last.
func (f *Facts) NeedsPools() bool {
	before := &f.ControlPlane.Status
	return f.Installed() && (before.Upgrade.Version != "" || len(before.PoolsBehind) > 0 || f.NeedsReleases())
}

// PoolsMatter reports whether something is to be told of pools.
func (f *Facts) PoolsMatter() bool { return f.Workload.Upgrading != "" || f.NeedsPools() }

// UpdatesInPlace reports whether Cluster API waits for a Machine to be as its MachineSet says.
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

// ClusterFollows reports whether the cluster runs a release, or a newer one, or is being brought to it.
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

// WorkerVersion is the version that a worker is to bear; empty: none is given.
func (f *Facts) WorkerVersion(m *clusterv1.Machine) string {
	if owner := metav1.GetControllerOf(m); owner != nil {
		return f.Sets[owner.UID].Version
	}
	return ""
}

// MachineSet is what a MachineSet wants of its Machines, or its MachineDeployment where it has one, for a set that was
// superseded keeps what it wanted before.
type MachineSet struct {
	// Version is what the Machines are to bear; empty: none is given.
	Version string
	// RollsOut is true when Cluster API brings the Machines to it, in place or by replacing them.
	RollsOut bool
}

// MachineSets finds that out, by the UID of the set.
func MachineSets(deployments []clusterv1.MachineDeployment, sets []clusterv1.MachineSet) map[types.UID]MachineSet {
	of := map[types.UID]MachineSet{}
	for i := range deployments {
		spec := &deployments[i].Spec
		of[deployments[i].UID] = MachineSet{Version: spec.Template.Spec.Version, RollsOut: spec.Rollout.Strategy.Type != clusterv1.OnDeleteMachineDeploymentStrategyType}
	}
	found := map[types.UID]MachineSet{}
	for i := range sets {
		found[sets[i].UID] = MachineSet{Version: sets[i].Spec.Template.Spec.Version}
		if owner := metav1.GetControllerOf(&sets[i]); owner != nil && OwnedByKind(&sets[i], "MachineDeployment") {
			found[sets[i].UID] = of[owner.UID]
		}
	}
	return found
}

func (f *Facts) release(version string) (semver.Version, bool) {
	v, err := openshift.ParseVersion(version)
	return v, err == nil
}
