package upgrade

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/openshift"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// edit is a state of release and version after an edit, and what the provider does with it.
type edit struct {
	// release and version are those of the spec, end is the version of the topology if that is later.
	release, version, end string
	// plan is the next version that Cluster API plans for the workers; "" if it reports no plan.
	plan string
	// runs and kubernetes are those of the cluster, upgrading is the release to which it is being upgraded. No connection to
	// the cluster: runs is "".
	runs, kubernetes, upgrading string
	// set is the version in the template of a worker, machine that of its Machine, kubelet that of its kubelet.
	set, machine, kubelet string
	// before is the version that the status had before.
	before string

	// requested is true if the release is requested, reason that of the blocker.
	requested bool
	reason    string
	// reported is the version in the status, master the version of the control-plane Machines, followed the version that the
	// worker gets; "" if it gets none.
	reported, master, followed string
}

// contained are the Kubernetes versions in the images of releases.
var contained = map[string]string{
	"4.16.2": "v1.29.6", "4.17.0": "v1.30.5", "4.18.5": "v1.31.2", "4.19.10": "v1.32.7", "4.19.11": "v1.32.7", "4.20.8": "v1.33.5",
	"4.22.7": "v1.35.6", "4.22.11": "v1.35.6", "4.23.0": "v1.36.5", "5.0.0": "v1.36.4",
}

// TestTruthTable has a row for each edit of release and version. What happens before the installation, and the rollouts of
// MachineDeployments that a policy refuses, are at the end of this file.
func TestTruthTable(t *testing.T) {
	const mismatch, inProgress = controlplanev1.KubernetesVersionMismatchReason, controlplanev1.UpgradeInProgressReason
	for situation, e := range map[string]edit{
		"created, the release alone, outside of a topology": {
			release: "4.19.10", runs: "4.19.10", kubernetes: "v1.32.7", reported: "v1.32.7", master: "v1.32.7",
		},
		"release and version in one edit": {
			release: "4.20.8", version: "v1.33.5", runs: "4.19.10", kubernetes: "v1.32.7",
			requested: true, reason: inProgress, reported: "v1.32.7", master: "v1.32.7",
		},
		"the release first": {
			release: "4.20.8", version: "v1.32.7", runs: "4.19.10", kubernetes: "v1.32.7",
			reason: mismatch, reported: "v1.32.7", master: "v1.32.7",
		},
		"the release, outside of a topology": {
			release: "4.20.8", runs: "4.19.10", kubernetes: "v1.32.7",
			requested: true, reason: inProgress, reported: "v1.32.7", master: "v1.32.7",
		},
		"the version first": {
			release: "4.19.10", version: "v1.33.5", runs: "4.19.10", kubernetes: "v1.32.7", reported: "v1.32.7", master: "v1.32.7",
		},
		"the version first, corrected by the release": {
			release: "4.20.8", version: "v1.33.5", runs: "4.19.10", kubernetes: "v1.32.7",
			requested: true, reason: inProgress, reported: "v1.32.7", master: "v1.32.7",
		},
		"another release with the same version": {
			release: "4.22.11", version: "v1.35.6", runs: "4.22.7", kubernetes: "v1.35.6",
			requested: true, reason: inProgress, reported: "v1.35.6", master: "v1.35.6",
		},
		"another release with the same version is complete": {
			release: "4.22.11", version: "v1.35.6", runs: "4.22.11", kubernetes: "v1.35.6",
			set: "v1.35.6", machine: "v1.35.6", kubelet: "v1.35.6", reported: "v1.35.6", master: "v1.35.6",
		},
		"the version alone, of the release that runs": {
			release: "4.20.8", version: "v1.33.5", runs: "4.20.8", kubernetes: "v1.33.5",
			set: "v1.33.5", machine: "v1.32.7", kubelet: "v1.33.5", reported: "v1.33.5", master: "v1.33.5", followed: "v1.33.5",
		},
		"an upgrade that another client began": {
			release: "4.19.10", version: "v1.32.7", runs: "4.19.10", kubernetes: "v1.33.5", upgrading: "4.20.8",
			set: "v1.32.7", machine: "v1.32.7", kubelet: "v1.32.7", reported: "v1.33.5", master: "v1.33.5",
		},
		"a MachineDeployment gets the version before the kubelet": {
			release: "4.20.8", version: "v1.33.5", runs: "4.20.8", kubernetes: "v1.33.5",
			set: "v1.33.5", machine: "v1.32.7", kubelet: "v1.32.7", reported: "v1.33.5", master: "v1.33.5",
		},
		"the kubelet gets the version before the MachineDeployment": {
			release: "4.20.8", version: "v1.33.5", runs: "4.20.8", kubernetes: "v1.33.5",
			set: "v1.32.7", machine: "v1.32.7", kubelet: "v1.33.5", reported: "v1.33.5", master: "v1.33.5",
		},
		"a MachineDeployment without version": {
			release: "4.20.8", runs: "4.20.8", kubernetes: "v1.33.5",
			machine: "v1.32.7", kubelet: "v1.33.5", reported: "v1.33.5", master: "v1.33.5", followed: "v1.33.5",
		},
		"the first step of a chain, pools not paused": {
			release: "4.19.10", version: "v1.32.7", end: "v1.33.5", runs: "4.18.5", kubernetes: "v1.31.2",
			reason: controlplanev1.TopologySkipsWorkersReason, reported: "v1.31.2", master: "v1.31.2",
		},
		"the first step of a chain, planned for the workers, too": {
			release: "4.19.10", version: "v1.32.7", end: "v1.33.5", runs: "4.18.5", kubernetes: "v1.31.2", plan: "v1.32.7",
			set: "v1.31.2", machine: "v1.31.2", kubelet: "v1.31.2",
			requested: true, reason: inProgress, reported: "v1.31.2", master: "v1.31.2",
		},
		"the workers follow the first step of a chain": {
			release: "4.19.10", version: "v1.32.7", end: "v1.33.5", runs: "4.19.10", kubernetes: "v1.32.7", plan: "v1.33.5",
			set: "v1.32.7", machine: "v1.31.2", kubelet: "v1.32.7", reported: "v1.32.7", master: "v1.32.7", followed: "v1.32.7",
		},
		"another release of the first step of a chain, whose version the workers have": {
			release: "4.19.11", version: "v1.32.7", end: "v1.33.5", runs: "4.19.10", kubernetes: "v1.32.7", plan: "v1.33.5",
			set: "v1.32.7", machine: "v1.32.7", kubelet: "v1.32.7",
			requested: true, reason: inProgress, reported: "v1.32.7", master: "v1.32.7",
		},
		"the first step of a chain, planned for the control plane only": {
			release: "4.19.10", version: "v1.32.7", end: "v1.33.5", runs: "4.18.5", kubernetes: "v1.31.2", plan: "v1.33.5",
			set: "v1.31.2", machine: "v1.31.2", kubelet: "v1.31.2",
			reason: controlplanev1.TopologySkipsWorkersReason, reported: "v1.31.2", master: "v1.31.2",
		},
		"the last release in the first step of a chain": {
			release: "4.20.8", version: "v1.32.7", end: "v1.33.5", runs: "4.18.5", kubernetes: "v1.31.2",
			reason: controlplanev1.InvalidConfigurationReason, reported: "v1.31.2", master: "v1.31.2",
		},
		"the last step of a chain": {
			release: "4.20.8", version: "v1.33.5", end: "v1.33.5", runs: "4.19.10", kubernetes: "v1.32.7",
			set: "v1.31.2", machine: "v1.31.2", kubelet: "v1.31.2",
			requested: true, reason: inProgress, reported: "v1.32.7", master: "v1.32.7",
		},
		"the version is removed": {
			release: "4.20.8", runs: "4.20.8", kubernetes: "v1.33.5", before: "v1.33.5", reported: "v1.33.5", master: "v1.33.5",
		},
		"an older release": {
			release: "4.19.10", version: "v1.33.5", runs: "4.20.8", kubernetes: "v1.33.5", reported: "v1.33.5", master: "v1.33.5",
		},
		"the hash of the kubelets": {
			release: "4.16.2", version: "v1.29.6+aba1e8d", runs: "4.16.2", kubernetes: "v1.29.6+aba1e8d",
			set: "v1.29.6+aba1e8d", machine: "v1.29.6", kubelet: "v1.29.6+aba1e8d",
			reported: "v1.29.6+aba1e8d", master: "v1.29.6+aba1e8d", followed: "v1.29.6+aba1e8d",
		},
		"the release after those with a hash": {
			release: "4.17.0", version: "v1.30.5", runs: "4.16.2", kubernetes: "v1.29.6+aba1e8d",
			set: "v1.29.6+aba1e8d", machine: "v1.29.6+aba1e8d", kubelet: "v1.29.6+aba1e8d",
			requested: true, reason: inProgress, reported: "v1.29.6+aba1e8d", master: "v1.29.6+aba1e8d",
		},
		"the release after those with a hash is complete": {
			release: "4.17.0", version: "v1.30.5", runs: "4.17.0", kubernetes: "v1.30.5",
			set: "v1.30.5", machine: "v1.29.6+aba1e8d", kubelet: "v1.30.5", reported: "v1.30.5", master: "v1.30.5", followed: "v1.30.5",
		},
		"the next major version": {
			release: "5.0.0", version: "v1.36.4", runs: "4.22.11", kubernetes: "v1.35.6",
			requested: true, reason: inProgress, reported: "v1.35.6", master: "v1.35.6",
		},
		// Cluster API refuses the lower version of 5.0 in a topology.
		"the next major version with a lower patch of Kubernetes": {
			release: "5.0.0", version: "v1.36.5", runs: "4.23.0", kubernetes: "v1.36.5", reason: mismatch, reported: "v1.36.5", master: "v1.36.5",
		},
		"the next major version with a lower patch of Kubernetes, outside of a topology": {
			release: "5.0.0", runs: "4.23.0", kubernetes: "v1.36.5", machine: "v1.36.5", kubelet: "v1.36.5",
			requested: true, reason: inProgress, reported: "v1.36.5", master: "v1.36.5",
		},
		"the next major version with a lower patch of Kubernetes is complete, outside of a topology": {
			release: "5.0.0", runs: "5.0.0", kubernetes: "v1.36.4", before: "v1.36.5", machine: "v1.36.5", kubelet: "v1.36.4",
			reported: "v1.36.4", master: "v1.36.4", followed: "v1.36.4",
		},
		"restarted, the cluster does not answer": {
			release: "4.20.8", version: "v1.33.5", before: "v1.32.7", reported: "v1.32.7", master: "v1.32.7",
		},
		"moved to another hub, the cluster does not answer": {release: "4.20.8", version: "v1.33.5", reported: "v1.31.2", master: "v1.31.2"},
	} {
		t.Run(situation, func(t *testing.T) { e.expect(NewWithT(t)) })
	}
}

// expect compares the decisions for the state with the row.
func (e *edit) expect(g *WithT) {
	w := e.world()
	worker := w.Workers[0]
	g.Expect(versioning.KubernetesVersion(w.Facts)).To(Equal(e.reported))
	g.Expect(versioning.MachineVersion(w.Facts, nil)).To(Equal(e.master))
	g.Expect(versioning.FollowedVersion(w.Facts, worker)).To(Equal(e.followed))
	if !Due(w.Facts) {
		g.Expect(e.requested || e.reason != "").To(BeFalse())
		return
	}
	request, blocker := Next(w.Facts, &w.seen, Kubernetes{Version: contained[e.release]})
	g.Expect(request.Update != nil).To(Equal(e.requested))
	g.Expect(blocker).To(HaveValue(HaveField("Reason", e.reason)))
}

func (e *edit) world() *world {
	w := newWorld()
	w.spec().DistributionVersion, w.spec().Version, w.ControlPlane.Status.Version = e.release, e.version, e.before
	nodes := append(slices.Clone(w.Workload.Nodes), workload.Node{Name: "w0", KubeletVersion: e.kubelet})
	w.Workload = workload.State{
		Connected: e.runs != "", OpenShiftVersion: e.runs, ReleaseImage: running, Upgrading: e.upgrading, Nodes: nodes,
		KubernetesVersion: e.kubernetes, APIServersVersion: e.kubernetes, PoolsKnown: true, UnpausedPools: []string{"worker"},
	}
	w.seen = workload.ClusterVersion{
		Runs: e.runs, Upgrading: e.upgrading, Offers: []workload.Offer{{Version: e.release, Image: newest}},
	}
	if e.runs == "" {
		w.Machines[0].Spec.Version = "v1.31.2"
	}
	if e.version != "" {
		w.Cluster = &clusterv1.Cluster{}
		w.Cluster.Spec.Topology.Version = e.version
		w.Cluster.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{{Name: "w"}}
		if e.plan != "" {
			w.Cluster.Status.Workers = &clusterv1.WorkersStatus{UpgradePlan: []clusterv1.StatusUpgradePlanVersion{{Version: e.plan}}}
		}
		if e.end != "" {
			w.Cluster.Spec.Topology.Version = e.end
		}
	}
	worker := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "w0", OwnerReferences: []metav1.OwnerReference{
		{Kind: "MachineSet", Name: "s", UID: "s", Controller: ptr.To(true)},
	}}}
	worker.Spec.Version, worker.Spec.Bootstrap.ConfigRef.Kind, worker.Status.NodeRef.Name = e.machine, workers.ConfigKind, "w0"
	w.Workers, w.Sets = []*clusterv1.Machine{worker}, map[types.UID]workers.MachineSet{"s": {Version: e.set, TopologyName: "w"}}
	return w
}

// TestWrongPairIsNotInstalled: before the installation a wrong pair blocks the power-on. TestKubernetesConflict in package
// openshift and the end-to-end test "A wrong pair of release and version" belong to this row. End-to-end and admission
// tests cover the edits that Cluster API or a policy refuses. These are a lower version of the topology, other templates
// of workers, and a version of a MachineDeployment without OnDelete.
func TestWrongPairIsNotInstalled(t *testing.T) {
	for release, version := range contained {
		g := NewWithT(t)
		parsed, err := versions.ParseRelease(release)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(openshift.KubernetesConflict(parsed, version, version, openshift.Settings{})).To(BeEmpty())
		g.Expect(openshift.KubernetesConflict(parsed, "", version, openshift.Settings{})).To(BeEmpty(), "on a disconnected hub")
		g.Expect(openshift.KubernetesConflict(parsed, version, "v1.40.0", openshift.Settings{})).NotTo(BeEmpty())
		g.Expect(openshift.KubernetesConflict(parsed, "", "v1.40.0", openshift.Settings{})).NotTo(BeEmpty(), "on a disconnected hub")
	}
}
