package upgrade

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// chain returns a cluster with 4.18.5 whose topology is upgraded to 4.20, with 4.19.1 as the first release. The user lets this
// provider pause pools.
func chain() *world {
	w := newWorld()
	w.runs("4.18.5")
	w.seen.Offers = []workload.Offer{{Version: "4.19.1", Image: newest}}
	w.spec().DistributionVersion, w.spec().Version = "4.19.1", "v1.32.7"
	w.spec().Upgrade.PauseWorkerPools = controlplanev1.PauseWorkerPoolsDuringChain
	w.Cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	w.Cluster.Spec.Topology.Version = "v1.33.5"
	w.Cluster.Spec.Topology.Workers.MachineDeployments = make([]clusterv1.MachineDeploymentTopology, 1)
	w.Workload.KubernetesVersion, w.Workload.APIServersVersion = "v1.31.2", "1.31.2"
	w.Workload.PoolsKnown, w.Workload.UnpausedPools = true, []string{"gpu", "worker"}
	return w
}

// has gives the cluster a pool.
func has(pool workload.Pool) func(*world) {
	return func(w *world) { w.Workload.Pools = []workload.Pool{pool} }
}

func TestPoolsArePausedBeforeTheFirstReleaseOfAChain(t *testing.T) {
	for situation, tc := range map[string]struct {
		change func(*world)
		pause  bool
		text   string
	}{
		"updated pools":       {func(*world) {}, true, "until the control plane has v1.33.5: gpu, worker"},
		"a pool is behind":    {has(workload.Pool{Name: "gpu", Behind: true}), false, "not degraded: gpu"},
		"a pool is degraded":  {has(workload.Pool{Name: "gpu", Degraded: "disk full"}), false, "not degraded: gpu"},
		"masters are behind":  {has(workload.Pool{Name: "master", Behind: true}), true, "pausing"},
		"not opted in":        {func(w *world) { w.spec().Upgrade.PauseWorkerPools = "" }, false, "Set spec.upgrade.pauseWorkerPools to"},
		"unhealthy":           {func(w *world) { w.seen.Unhealthy = degraded("x") }, false, "until the cluster is healthy"},
		"pools are not known": {func(w *world) { w.Workload.PoolsKnown = false }, false, "waiting for the MachineConfigPools"},
		"three minor versions": {
			func(w *world) { w.Cluster.Spec.Topology.Version = "v1.34.2" }, false, "only over two minor versions",
		},
		"from an odd minor version": {func(w *world) {
			w.runs("4.19.1")
			w.seen.Offers[0].Version, w.spec().DistributionVersion, w.spec().Version = "4.20.8", "4.20.8", "v1.33.5"
			w.Cluster.Spec.Topology.Version, w.Workload.KubernetesVersion, w.Workload.APIServersVersion = "v1.34.2", "v1.32.7", "1.32.7"
		}, false, "from an even one"},
	} {
		t.Run(situation, func(t *testing.T) {
			g, w := NewWithT(t), chain()
			tc.change(w)
			request, blocker := Next(w.Facts, &w.seen, Kubernetes{})
			g.Expect(request.Update).To(BeNil())
			g.Expect(blocker.Message).To(ContainSubstring(tc.text))
			if !tc.pause {
				g.Expect(request.Pause).To(BeNil())
				return
			}
			g.Expect(request.Pause).To(Equal(&workload.PoolPause{Pools: []string{"gpu", "worker"}, Until: "v1.33.5"}))
			g.Expect(blocker.Watched).To(BeTrue(), "the pools are watched")
			w.Workload.UnpausedPools = nil
			request, _ = Next(w.Facts, &w.seen, Kubernetes{})
			g.Expect(request.Pause).To(BeNil())
			g.Expect(request.Update).NotTo(BeNil())
		})
	}
}

func TestPoolsAreResumed(t *testing.T) {
	ours := workload.Pool{Name: "worker", Paused: true, PausedUntil: "v1.33.5"}
	for situation, tc := range map[string]struct {
		change func(*world)
		pool   workload.Pool
		resume bool
	}{
		"before the end of the chain":       {func(*world) {}, ours, false},
		"permission withdrawn":              {func(w *world) { w.spec().Upgrade.PauseWorkerPools = "" }, ours, true},
		"never":                             {func(w *world) { w.spec().Upgrade.PauseWorkerPools = "Never" }, ours, true},
		"chain complete":                    {completeChain, ours, true},
		"chain complete, pause of the user": {completeChain, workload.Pool{Name: "worker", Paused: true}, false},
		"resumed by the user":               {func(*world) {}, workload.Pool{Name: "worker", PausedUntil: "v1.33.5"}, true},
		"chain complete, no connection":     {func(w *world) { completeChain(w); w.Workload.Connected = false }, ours, false},
		"chain complete, pools unknown":     {func(w *world) { completeChain(w); w.Workload.PoolsKnown = false }, ours, false},
	} {
		t.Run(situation, func(t *testing.T) {
			g, w := NewWithT(t), chain()
			w.Workload.Pools = []workload.Pool{tc.pool, {Name: "gpu", Behind: true}}
			tc.change(w)
			if tc.resume {
				g.Expect(PoolsToResume(w.Facts)).To(ConsistOf("worker"))
			} else {
				g.Expect(PoolsToResume(w.Facts)).To(BeEmpty())
			}
		})
	}
}

// completeChain completes the last release of a chain.
func completeChain(w *world) {
	w.runs("4.20.8")
	w.spec().DistributionVersion, w.spec().Version = "4.20.8", "v1.33.5"
	w.Workload.KubernetesVersion, w.Workload.APIServersVersion = "v1.33.5", "1.33.5"
}
