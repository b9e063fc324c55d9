package e2e

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift/versionoperator"
)

const (
	// onDelete and inPlace are the MachineDeployments of inTwoDeployments.
	onDelete, inPlace = "worker", "in-place"
	// apiServers is the ClusterOperator before which no MachineDeployment of a topology gets its version.
	apiServers = "kube-apiserver"
	// hostConfigs is the ClusterOperator before which no upgrade ends.
	hostConfigs = "machine-config"
)

// The cluster stays between two releases until the last spec. Each spec starts with the cluster of the former one.
var _ = Describe("A topology that is being upgraded", Ordered, Label("upgrade", "nightly"), func() {
	const minor = "4.20.8"
	var cluster *lab.Cluster
	var kept []lab.Machine

	BeforeAll(func(ctx SpecContext) {
		onlySimulated()
		cluster = apply(ctx, "clusterclass", lab.Mutations{
			Namespace: "topology-workers", ClusterName: "mended", ExtraHosts: 4, Edit: inTwoDeployments, Divert: lab.Forward,
		})
		registerExtension(ctx, cluster.Namespace)
		waitAvailable(ctx, cluster)
		expectReconciled(ctx, cluster, installedVersion)
		changeTopologyOf(ctx, cluster, checkWorkers)
		kept = state(ctx, cluster).Machines
		publish(cluster, minor, minors)
		Expect(cluster.Versions().PausePool(ctx, versionoperator.WorkerPool, true)).To(Succeed())
		for _, operator := range []string{apiServers, hostConfigs} {
			cluster.Versions().Block(operator)
		}
		request(ctx, cluster, kubernetesOf(minor), minor, minors)
		waitRollingOut(ctx, cluster, "waiting on "+apiServers)
	}, NodeTimeout(2*installTimeout))

	AfterEach(func(ctx SpecContext) {
		if cluster != nil && !CurrentSpecReport().Failed() {
			expectKeptMachines(ctx, cluster, kept)
		}
	}, NodeTimeout(soon))

	It("replaces an unhealthy worker before its MachineDeployment has the version, and adds none", func(ctx SpecContext) {
		scaleWorkers(ctx, cluster, onDelete, 2)
		lost := workersIn(state(ctx, cluster), onDelete)[0]
		kept = others(kept, lost)
		loseWorker(ctx, cluster, lost)
		s := waitRecovered(ctx, cluster, 5, lost)
		Expect(workersIn(s, onDelete)).To(ConsistOf(HaveField("Spec.Version", kubernetesOf(installedVersion))))
		waitPending(ctx, cluster, minor)
	}, NodeTimeout(installTimeout))

	It("adds a worker once its MachineDeployment has the version, and replaces one that is updated in place", func(ctx SpecContext) {
		cluster.Versions().Recover(apiServers)
		s := waitRecovered(ctx, cluster, 6)
		Expect(workersIn(s, onDelete)).To(ConsistOf(HaveField("Spec.Version", kubernetesOf(installedVersion)),
			HaveField("Spec.Version", kubernetesOf(minor))))
		s = wait(ctx, cluster, "updating a worker in place", func(s *lab.State) bool {
			return slices.ContainsFunc(workersIn(s, inPlace), func(m lab.Machine) bool {
				c := lab.Condition(m.Status.Conditions, clusterv1.MachineUpdatingCondition)
				return c.Status == metav1.ConditionTrue && strings.Contains(c.Message, "has not updated it to "+kubernetesOf(minor))
			})
		})
		lost := workersIn(s, inPlace)[0]
		kept = others(kept, lost)
		loseWorker(ctx, cluster, lost)
		s = waitRecovered(ctx, cluster, 6, lost)
		Expect(workersIn(s, inPlace)).To(ConsistOf(HaveField("Spec.Version", kubernetesOf(minor))))
	}, NodeTimeout(2*installTimeout))

	It("does not replace a worker in the former MachineSet before its Machine is deleted", func(ctx SpecContext) {
		former := slices.DeleteFunc(workersIn(state(ctx, cluster), onDelete), func(m lab.Machine) bool {
			return m.Spec.Version != kubernetesOf(installedVersion)
		})
		Expect(former).To(HaveLen(1))
		loseWorker(ctx, cluster, former[0])
		s := wait(ctx, cluster, "refusing the replacement", func(s *lab.State) bool {
			return has(s, former[0]) && lab.Condition(machineNamed(s, former[0].Name).Status.Conditions,
				clusterv1.MachineOwnerRemediatedCondition).Reason == clusterv1.MachineSetMachineCannotBeRemediatedReason
		})
		Expect(lab.Condition(machineNamed(s, former[0].Name).Status.Conditions, clusterv1.MachineOwnerRemediatedCondition).Message).
			To(ContainSubstring("pending removal due to rollout"), "docs/troubleshooting.md quotes the message")
		expectKeptMachines(ctx, cluster, former)

		deleteMachines(ctx, cluster, former...)
		s = waitRecovered(ctx, cluster, 6, former...)
		Expect(workersIn(s, onDelete)).To(HaveEach(HaveField("Spec.Version", kubernetesOf(minor))))
	}, NodeTimeout(installTimeout))

	It("ends its upgrade, also of the workers that joined meanwhile", func(ctx SpecContext) {
		joined := state(ctx, cluster).Machines
		Expect(cluster.Versions().PausePool(ctx, versionoperator.WorkerPool, false)).To(Succeed())
		cluster.Versions().Recover(hostConfigs)
		expectUpgraded(ctx, cluster, minor)
		expectReconciled(ctx, cluster, minor)
		Expect(nodeReleases(ctx, cluster)).To(And(HaveLen(6), HaveEach(minor)))
		expectKeptMachines(ctx, cluster, joined)
	}, NodeTimeout(2*installTimeout))
})

var _ = Describe("A cluster that is being upgraded", Label("upgrade", "nightly"), func() {
	It("adds and replaces workers outside of a topology, whose Machines have the versions of their kubelets", func(ctx SpecContext) {
		onlySimulated()
		cluster := apply(ctx, "ha", lab.Mutations{
			Namespace: "upgrade-workers", ClusterName: "outside", ExtraHosts: 3, Divert: lab.Forward,
		})
		waitAvailable(ctx, cluster)
		expectUpToDate(ctx, cluster, 2)
		kill(ctx)
		Expect(cluster.Scale(ctx, 3)).To(Succeed())
		waitRecovered(ctx, cluster, 6)
		expectUpToDate(ctx, cluster, 3)
		before := state(ctx, cluster)
		lost := before.Machines[len(before.Machines)-1]
		Expect(lost.IsControlPlane()).To(BeFalse())
		publish(cluster, nextPatch, patches)
		Expect(cluster.Versions().PausePool(ctx, versionoperator.WorkerPool, true)).To(Succeed())
		cluster.Versions().Block(hostConfigs)
		changeSpec(ctx, cluster, `{"distributionVersion":"`+nextPatch+`","upgrade":{"channel":"`+patches+`"}}`)
		waitRollingOut(ctx, cluster, "waiting on "+hostConfigs)

		By("adding one, and losing another, which the MachineHealthCheck of the sample replaces")
		Expect(cluster.Scale(ctx, 4)).To(Succeed())
		loseWorker(ctx, cluster, lost)
		s := waitRecovered(ctx, cluster, 7, lost)
		expectKeptMachines(ctx, cluster, others(before.Machines, lost))
		expectFollowed(ctx, cluster, nextPatch, installedVersion)

		By("ending the upgrade")
		Expect(cluster.Versions().PausePool(ctx, versionoperator.WorkerPool, false)).To(Succeed())
		cluster.Versions().Recover(hostConfigs)
		expectUpgraded(ctx, cluster, nextPatch)
		expectFollowed(ctx, cluster, nextPatch, nextPatch)
		expectUpToDate(ctx, cluster, 4)
		expectKeptMachines(ctx, cluster, s.Machines)
	}, NodeTimeout(3*installTimeout))
})

// expectUpToDate waits until Cluster API counts all workers outside of a topology as up to date. From 1.14 on it compares the
// versions of Machine and kubelet.
func expectUpToDate(ctx context.Context, cluster *lab.Cluster, replicas int32) {
	GinkgoHelper()
	Eventually(ctx, func() clusterv1.MachineDeploymentStatus { return workersOf(ctx, cluster).Status }).WithTimeout(soon).
		Should(And(HaveField("Replicas", HaveValue(Equal(replicas))), HaveField("UpToDateReplicas", HaveValue(Equal(replicas)))))
}

// checkWorkers sets the health checks of workers in a topology. Their times are those of a real cluster: the restart of a
// host makes no worker unhealthy. Cluster API would delete a MachineHealthCheck with the name of the cluster.
func checkWorkers(topology *clusterv1.Topology) {
	const hour = 3600
	for i := range topology.Workers.MachineDeployments {
		topology.Workers.MachineDeployments[i].HealthCheck.Checks = clusterv1.MachineDeploymentTopologyHealthCheckChecks{
			NodeStartupTimeoutSeconds: ptr.To[int32](2 * hour),
			UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, TimeoutSeconds: ptr.To[int32](hour)},
				{Type: corev1.NodeReady, Status: corev1.ConditionFalse, TimeoutSeconds: ptr.To[int32](hour)},
			},
		}
	}
}

// expectFollowed waits until the Machines of masters and workers have the versions of Kubernetes of releases.
func expectFollowed(ctx context.Context, cluster *lab.Cluster, masters, workers string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		s, err := cluster.State(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		for _, m := range s.Machines {
			release := workers
			if m.IsControlPlane() {
				release = masters
			}
			g.Expect(m.Spec.Version).To(Equal(kubernetesOf(release)), "Machine %s", m.Name)
		}
	}).WithTimeout(installTimeout).Should(Succeed())
}

// loseWorker switches the host of a worker off for ever, and requests the remediation of its Machine.
func loseWorker(ctx context.Context, cluster *lab.Cluster, m lab.Machine) {
	GinkgoHelper()
	patch(ctx, m.Host.DeepCopy(), `{"metadata":{"annotations":{"capm3.metal3.io/unhealthy":"the host is being repaired"}}}`)
	rackHost(m).PowerOff()
	loseNode(ctx, cluster, m.Status.NodeRef.Name)
	patch(ctx, m.DeepCopy(), `{"metadata":{"annotations":{"`+clusterv1.RemediateMachineAnnotation+`":""}}}`)
}

// waitRecovered waits until a cluster has exactly a number of Machines with Nodes, and none of the lost ones. It returns the
// state. Machines that Cluster API updates in place are not Running.
func waitRecovered(ctx context.Context, cluster *lab.Cluster, machines int, lost ...lab.Machine) *lab.State {
	GinkgoHelper()
	incomplete := func(m lab.Machine) bool { return !m.Status.NodeRef.IsDefined() || !m.DeletionTimestamp.IsZero() }
	return wait(ctx, cluster, "complete", func(s *lab.State) bool {
		return len(s.Machines) == machines && !slices.ContainsFunc(s.Machines, incomplete) &&
			!slices.ContainsFunc(lost, func(m lab.Machine) bool { return has(s, m) })
	})
}

// expectKeptMachines checks that Machines exist, are not being deleted, and that no disk of theirs was wiped.
func expectKeptMachines(ctx context.Context, cluster *lab.Cluster, machines []lab.Machine) {
	GinkgoHelper()
	now := state(ctx, cluster)
	for _, m := range machines {
		Expect(has(now, m)).To(BeTrue(), "Machine %s", m.Name)
		Expect(machineNamed(now, m.Name).DeletionTimestamp).To(BeNil(), "Machine %s", m.Name)
		Expect(rackHost(m).Losses()).To(BeEmpty(), "host of Machine %s", m.Name)
	}
}

// workersIn returns the Machines of a MachineDeployment in a topology.
func workersIn(s *lab.State, deployment string) []lab.Machine {
	return slices.DeleteFunc(slices.Clone(s.Machines), func(m lab.Machine) bool {
		return m.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel] != deployment
	})
}

// others returns Machines without one of them.
func others(machines []lab.Machine, one lab.Machine) []lab.Machine {
	return slices.DeleteFunc(slices.Clone(machines), func(m lab.Machine) bool { return m.UID == one.UID })
}
