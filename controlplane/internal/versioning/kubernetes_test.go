package versioning_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/installationstate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/sample"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// installed returns the facts of an installed cluster with Kubernetes versions of its spec and API servers.
func installed(wanted, runs string) *facts.Facts {
	f := sample.Facts(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Version = wanted
		cp.Status.Installation.Phase = controlplanev1.InstallationInstalled
	})
	f.Workload = workload.State{Connected: true, OpenShiftVersion: "4.16.2", KubernetesVersion: runs}
	installationstate.Decide(f)
	return f
}

// Cluster API compares versions literally, with their build metadata.
func TestFollowedVersion(t *testing.T) {
	for situation, tc := range map[string]struct{ machine, set, kubelet, want string }{
		"no version, installed":             {"", "", "v1.32.7", "v1.32.7"},
		"no version, as the kubelet":        {"v1.32.7", "", "v1.32.7", ""},
		"no version, upgraded":              {"v1.32.7", "", "v1.33.5", "v1.33.5"},
		"no version, other hash":            {"v1.29.6+aaa", "", "v1.29.6+bbb", "v1.29.6+bbb"},
		"as the MachineDeployment":          {"v1.32.7", "v1.32.7", "v1.33.5", ""},
		"the kubelet is behind":             {"v1.32.7", "v1.33.5", "v1.32.7", ""},
		"the kubelet follows":               {"v1.32.7", "v1.33.5", "v1.33.5", "v1.33.5"},
		"the MachineDeployment gets a hash": {"v1.29.6", "v1.29.6+aaa", "v1.29.6+aaa", "v1.29.6+aaa"},
		"the MachineDeployment loses it":    {"v1.29.6+aaa", "v1.29.6", "v1.29.6+aaa", "v1.29.6"},
		"another hash":                      {"v1.29.6+aaa", "v1.29.6+bbb", "v1.29.6+bbb", "v1.29.6+bbb"},
		"an older MachineDeployment":        {"v1.33.5", "v1.32.7", "v1.33.5", ""},
		"a release as version":              {"v1.32.7", "v4.20.8", "v1.33.5", ""},
		"the kubelet is unknown":            {"v1.32.7", "", "", ""},
	} {
		t.Run(situation, func(t *testing.T) {
			f := installed("", "v1.33.5")
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "w", OwnerReferences: []metav1.OwnerReference{
				{Kind: "MachineSet", Name: "s", UID: "s", Controller: ptr.To(true)},
			}}}
			m.Spec.Version, m.Spec.Bootstrap.ConfigRef.Kind, m.Status.NodeRef.Name = tc.machine, workers.ConfigKind, "w"
			f.Workers, f.Sets = []*clusterv1.Machine{m}, map[types.UID]workers.MachineSet{"s": {Version: tc.set}}
			f.Workload.Nodes = []workload.Node{{Name: "w", KubeletVersion: tc.kubelet}}
			NewWithT(t).Expect(versioning.FollowedVersion(f, m)).To(Equal(tc.want))
		})
	}
}

// Cluster API counts a control plane whose build metadata differ as being upgraded. It then accepts no other version.
func TestReportedVersionHasTheMetadataOfTheSpec(t *testing.T) {
	for _, tc := range [][3]string{
		{"v1.29.6+aaa", "v1.29.6+bbb", "v1.29.6+aaa"},
		{"v1.29.6", "v1.29.6+bbb", "v1.29.6+bbb"},
		{"v1.30.5", "v1.29.6+bbb", "v1.29.6+bbb"},
		{"", "v1.29.6+bbb", "v1.29.6+bbb"},
	} {
		NewWithT(t).Expect(versioning.KubernetesVersion(installed(tc[0], tc[1]))).To(Equal(tc[2]), "%v", tc)
	}
}

func TestTopologySkipsWorkers(t *testing.T) {
	for situation, tc := range map[string]struct {
		step, end string
		// deployments are the versions of the MachineDeployments, plan is what Cluster API reports.
		deployments, plan []string
		known             bool
		unpaused          []string
		want              bool
	}{
		"one minor version":        {"v1.33.5", "v1.33.5", []string{"v1.32.7"}, nil, true, []string{"worker"}, false},
		"several":                  {"v1.32.7", "v1.33.5", []string{"v1.31.2"}, nil, true, []string{"worker"}, true},
		"several, pools unknown":   {"v1.32.7", "v1.33.5", []string{"v1.31.2"}, nil, false, nil, true},
		"several, paused pools":    {"v1.32.7", "v1.33.5", []string{"v1.31.2"}, nil, true, nil, false},
		"several, no workers":      {"v1.32.7", "v1.33.5", nil, nil, true, []string{"worker"}, false},
		"another patch":            {"v1.33.4", "v1.33.5", []string{"v1.32.7"}, nil, true, []string{"worker"}, false},
		"no version":               {"", "v1.33.5", []string{"v1.31.2"}, nil, true, []string{"worker"}, false},
		"planned for the last one": {"v1.32.7", "v1.33.5", []string{"v1.31.2"}, []string{"v1.33.5"}, true, []string{"worker"}, true},
		"planned for each": {
			"v1.32.7", "v1.33.5", []string{"v1.31.2"}, []string{"v1.32.7", "v1.33.5"}, true, []string{"worker"}, false,
		},
		"planned for each, pools unknown": {
			"v1.32.7", "v1.33.5", []string{"v1.31.2"}, []string{"v1.32.7", "v1.33.5"}, false, nil, false,
		},
		"planned for another patch": {
			"v1.32.7", "v1.33.5", []string{"v1.31.2"}, []string{"v1.32.6", "v1.33.5"}, true, []string{"worker"}, true,
		},
		"all have the step, another release of it": {
			"v1.32.7", "v1.33.5", []string{"v1.32.7", "v1.32.7"}, []string{"v1.33.5"}, true, []string{"worker"}, false,
		},
		"one has the step": {
			"v1.32.7", "v1.33.5", []string{"v1.32.7", "v1.31.2"}, []string{"v1.33.5"}, true, []string{"worker"}, true,
		},
		"all have the step, Cluster API 1.13": {"v1.32.7", "v1.33.5", []string{"v1.32.7"}, nil, true, []string{"worker"}, false},
	} {
		t.Run(situation, func(t *testing.T) {
			g, f := NewWithT(t), installed(tc.step, "v1.31.2")
			inTopology(f, tc.end, tc.deployments, tc.plan)
			f.Workload.PoolsKnown, f.Workload.UnpausedPools = tc.known, tc.unpaused
			g.Expect(versioning.TopologySkipsWorkers(f)).To(Equal(tc.want))
			if tc.want {
				g.Expect(versioning.NeedsPools(f)).To(BeTrue(), "the pools decide")
			}
		})
	}
	withoutCluster := &facts.Facts{ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}}
	NewWithT(t).Expect(versioning.TopologySkipsWorkers(withoutCluster)).To(BeFalse())
}

// inTopology adds a Cluster with a topology, the versions of its MachineDeployments, and their plan. Another MachineDeployment,
// outside of the topology, stays at an old version.
func inTopology(f *facts.Facts, end string, deployments, plan []string) {
	f.Cluster = &clusterv1.Cluster{}
	f.Cluster.Spec.Topology.Version = end
	f.Sets = map[types.UID]workers.MachineSet{"outside": {Version: "v1.30.5"}}
	for i, version := range deployments {
		name := fmt.Sprintf("w%d", i)
		f.Cluster.Spec.Topology.Workers.MachineDeployments = append(f.Cluster.Spec.Topology.Workers.MachineDeployments,
			clusterv1.MachineDeploymentTopology{Name: name})
		f.Sets[types.UID(name)] = workers.MachineSet{Version: version, TopologyName: name}
	}
	if plan != nil {
		f.Cluster.Status.Workers = &clusterv1.WorkersStatus{}
		for _, version := range plan {
			f.Cluster.Status.Workers.UpgradePlan = append(f.Cluster.Status.Workers.UpgradePlan, clusterv1.StatusUpgradePlanVersion{Version: version})
		}
	}
}

// A pause of pools of workers ends with the last release of the chain, or with the request for it.
func TestChainEnds(t *testing.T) {
	for situation, tc := range map[string]struct {
		release, step, end string
		runs, kubernetes   string
		upgrading          string
		ends               bool
	}{
		"before the first release":              {"4.19.10", "v1.32.7", "v1.33.5", "4.18.5", "v1.31.2", "", false},
		"during the first release":              {"4.19.10", "v1.32.7", "v1.33.5", "4.18.5", "v1.32.7", "4.19.10", false},
		"between the releases":                  {"4.19.10", "v1.32.7", "v1.33.5", "4.19.10", "v1.32.7", "", false},
		"the last release is requested":         {"4.20.8", "v1.33.5", "v1.33.5", "4.19.10", "v1.32.7", "", false},
		"the version is set before its release": {"4.19.10", "v1.33.5", "v1.33.5", "4.19.10", "v1.32.7", "", false},
		"API servers have the last version":     {"4.20.8", "v1.33.5", "v1.33.5", "4.19.10", "v1.33.5", "4.20.8", false},
		"complete":                              {"4.20.8", "v1.33.5", "v1.33.5", "4.20.8", "v1.33.5", "", true},
		"complete, the next one is requested":   {"4.21.3", "v1.34.2", "v1.34.2", "4.20.8", "v1.33.5", "", true},
		"reverted before the first release":     {"4.18.5", "v1.31.2", "v1.31.2", "4.18.5", "v1.31.2", "", true},
		"reverted, but the cluster has begun":   {"4.18.5", "v1.31.2", "v1.31.2", "4.18.5", "v1.31.2", "4.19.10", false},
	} {
		t.Run(situation, func(t *testing.T) {
			f := installed(tc.step, tc.kubernetes)
			f.ControlPlane.Spec.DistributionVersion = tc.release
			f.Workload.OpenShiftVersion, f.Workload.Upgrading, f.Workload.APIServersVersion = tc.runs, tc.upgrading, tc.kubernetes
			f.Cluster = &clusterv1.Cluster{}
			f.Cluster.Spec.Topology.Version = tc.end
			f.Cluster.Spec.Topology.Workers.MachineDeployments = make([]clusterv1.MachineDeploymentTopology, 1)
			NewWithT(t).Expect(versioning.ChainEnds(f, "v1.33.5")).To(Equal(tc.ends))
		})
	}
}

// A pause begins if the provider sees the first version of a chain before the plan of Cluster API. Cluster API before 1.14
// reports no plan. Then Cluster API waits for workers before the next version.
func TestChainEndsWhenWorkersGetEachVersion(t *testing.T) {
	for situation, tc := range map[string]struct {
		runs, upgrading    string
		deployments, plan  []string
		ends, skipsWorkers bool
	}{
		"the plan is not reported yet":       {"v1.31.2", "", []string{"v1.31.2"}, nil, false, true},
		"the plan lists the first version":   {"v1.31.2", "", []string{"v1.31.2"}, []string{"v1.32.7", "v1.33.5"}, true, false},
		"the plan lists only the last one":   {"v1.31.2", "", []string{"v1.31.2"}, []string{"v1.33.5"}, false, true},
		"paused, during the first release":   {"v1.31.2", "4.19.10", []string{"v1.31.2"}, nil, false, true},
		"paused, after it, not yet followed": {"v1.32.7", "", []string{"v1.31.2"}, nil, false, true},
		"paused, after it, version set":      {"v1.32.7", "", []string{"v1.32.7"}, nil, true, false},
	} {
		t.Run(situation, func(t *testing.T) {
			g, f := NewWithT(t), installed("v1.32.7", tc.runs)
			f.Workload.Upgrading, f.Workload.APIServersVersion = tc.upgrading, tc.runs
			f.Workload.PoolsKnown, f.Workload.UnpausedPools = true, []string{"worker"}
			inTopology(f, "v1.33.5", tc.deployments, tc.plan)
			g.Expect(versioning.ChainEnds(f, "v1.33.5")).To(Equal(tc.ends))
			g.Expect(versioning.TopologySkipsWorkers(f)).To(Equal(tc.skipsWorkers))
		})
	}
}

// After a move to another hub no status names the pools that this provider pauses.
func TestPoolsAreReadWhileTheyMayBePaused(t *testing.T) {
	g := NewWithT(t)
	f := installed("", "v1.31.2")
	g.Expect(versioning.NeedsPools(f)).To(BeFalse())
	f.ControlPlane.Status.PausedPools = []string{"worker"}
	g.Expect(versioning.NeedsPools(f)).To(BeTrue(), "the user withdrew the permission")
	f.ControlPlane.Status.PausedPools = nil
	f.ControlPlane.Spec.Upgrade.PauseWorkerPools = controlplanev1.PauseWorkerPoolsDuringChain
	g.Expect(versioning.NeedsPools(f)).To(BeTrue())
	g.Expect(versioning.PoolsMatter(f)).To(BeFalse(), "no pool is reported")
	f.Workload.Pools = []workload.Pool{{Name: "worker", PausedUntil: "v1.33.5"}}
	g.Expect(versioning.PoolsMatter(f)).To(BeTrue())
}
