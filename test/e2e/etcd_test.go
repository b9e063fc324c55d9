package e2e

import (
	"context"
	"math"
	"path"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilwait "k8s.io/apimachinery/pkg/util/wait"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// replaceTimeout is what the replacement of a control-plane host may take on a busy machine: its removal, the installation of another, and its way into etcd.
const replaceTimeout = 4 * time.Minute

// Each spec begins with what the one before left: a cluster of three, of whose etcd all is well, and a spare host.
var _ = Describe("Etcd", Ordered, Label("etcd"), func() {
	var cluster *lab.Cluster

	BeforeAll(func(ctx SpecContext) {
		onlySimulated()
		cluster = apply(ctx, "compact", lab.Mutations{Namespace: "etcd", ClusterName: "quorum", EtcdMembers: true, ExtraHosts: 1})
		waitAvailable(ctx, cluster)
		expectWell(ctx, cluster)
	}, NodeTimeout(installTimeout+soon))

	AfterEach(func() {
		if cluster != nil {
			Expect(cluster.WipedMembers()).To(BeEmpty(), "hosts whose disks were wiped while they voted")
		}
	})

	It("loses neither its quorum nor a write when two masters are deleted at once", func(ctx SpecContext) {
		before := state(ctx, cluster).Machines
		first, second := before[0], before[1]
		Expect(cluster.MoveEtcdLeader(ctx, first.Status.NodeRef.Name)).To(Succeed())
		writer := cluster.StartWriting(ctx)
		census := takeCensus(ctx, cluster)

		deleteMachines(ctx, cluster, first)
		Eventually(ctx, func() []corev1.Event { return events(ctx, cluster.Namespace, "EtcdLeaderMoved") }).ShouldNot(BeEmpty())
		deleteMachines(ctx, cluster, second)
		waitReplaced(ctx, cluster, first, second)
		expectWell(ctx, cluster)

		Expect(census()).To(Equal(2), "voters, when they were fewest")
		acknowledged := writer.Stop()
		Expect(acknowledged).NotTo(BeEmpty())
		lost, err := cluster.Lost(ctx, acknowledged)
		Expect(err).NotTo(HaveOccurred())
		Expect(lost).To(BeEmpty(), "what was acknowledged, and is not there")
		expectNothingLeft(ctx, cluster, first, second)
		Expect(events(ctx, cluster.Namespace, "EtcdMemberRemoved")).To(HaveLen(2))
		Expect(events(ctx, cluster.Namespace, "HostReleased")).To(HaveLen(2))
	}, NodeTimeout(2*replaceTimeout))

	It("lets a dead master go first, and keeps a healthy one until the dead one is replaced", func(ctx SpecContext) {
		before := state(ctx, cluster).Machines
		dead, healthy := before[0], before[1]
		rackHost(dead).PowerOff()
		Eventually(cluster.EtcdSettled).WithContext(ctx).Should(MatchError(ContainSubstring("Degraded")))

		deleteMachines(ctx, cluster, healthy)
		Expect(waitReason(ctx, cluster, controlplanev1.ScalingDownCondition, controlplanev1.EtcdQuorumAtRiskReason)).
			To(And(ContainSubstring(healthy.Name), ContainSubstring(dead.Status.NodeRef.Name)), "whom it holds, and who is down")
		expectUntouched(ctx, cluster, healthy)

		By("deleting the dead one too, as the condition says")
		deleteMachines(ctx, cluster, dead)
		wait(ctx, cluster, "without the dead one", func(s *lab.State) bool { return !has(s, dead) })
		Expect(rackHost(healthy).PoweredOn()).To(BeTrue(), "until the dead one is replaced")
		rackHost(dead).PowerOn() // it is repaired, and free
		waitReplaced(ctx, cluster, dead, healthy)
		expectWell(ctx, cluster)
		expectNothingLeft(ctx, cluster, dead, healthy)
	}, NodeTimeout(2*replaceTimeout))

	It("is not touched while its quorum is lost, and goes on when it is back", func(ctx SpecContext) {
		before := state(ctx, cluster).Machines
		dead, back, healthy := before[0], before[1], before[2]
		rackHost(dead).PowerOff()
		rackHost(back).PowerOff()
		deleteMachines(ctx, cluster, healthy, dead)
		Expect(waitReason(ctx, cluster, controlplanev1.ScalingDownCondition, controlplanev1.EtcdQuorumAtRiskReason)).To(ContainSubstring("quorum"))
		expectUntouched(ctx, cluster, healthy)

		By("bringing one back: the dead one goes, then, once it is replaced, the healthy one")
		rackHost(back).PowerOn()
		wait(ctx, cluster, "without the dead one", func(s *lab.State) bool { return !has(s, dead) })
		rackHost(dead).PowerOn()
		waitReplaced(ctx, cluster, dead, healthy)
		expectWell(ctx, cluster)
	}, NodeTimeout(2*replaceTimeout))

	It("is not asked when the whole Cluster goes, not even where its quorum is lost", func(ctx SpecContext) {
		machines := state(ctx, cluster).Machines
		rackHost(machines[0]).PowerOff()
		rackHost(machines[1]).PowerOff()
		deleteMachines(ctx, cluster, machines[2])
		waitReason(ctx, cluster, controlplanev1.ScalingDownCondition, controlplanev1.EtcdQuorumAtRiskReason)
		expectDeleted(ctx, cluster)
	}, NodeTimeout(deleteTimeout+2*soon))
})

func deleteMachines(ctx context.Context, cluster *lab.Cluster, machines ...lab.Machine) {
	GinkgoHelper()
	for _, m := range machines {
		Expect(cluster.DeleteMachine(ctx, m)).To(Succeed())
	}
}

// rackHost is the server of a Machine.
func rackHost(m lab.Machine) *hosts.Host {
	return laboratory.Rack.Host(path.Join(m.Host.Namespace, m.Host.Name))
}

func has(s *lab.State, m lab.Machine) bool {
	return slices.ContainsFunc(s.Machines, func(other lab.Machine) bool { return other.UID == m.UID })
}

// waitReplaced waits until other Machines run in the place of some, whose names they may have.
func waitReplaced(ctx context.Context, cluster *lab.Cluster, gone ...lab.Machine) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(len(gone))*replaceTimeout)
	defer cancel()
	Expect(cluster.Wait(ctx, "replaced", func(s *lab.State) bool {
		return s.Available() && !slices.ContainsFunc(gone, func(m lab.Machine) bool { return has(s, m) })
	})).To(Succeed())
}

// expectWell checks what is true of a cluster whose etcd has members, however its Machines have changed since it was installed.
func expectWell(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	Eventually(cluster.EtcdSettled).WithContext(ctx).Should(Succeed())
	workload, err := cluster.Workload()
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, func(g Gomega) {
		s, err := cluster.State(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Available()).To(BeTrue())
		expectControlPlane(g, s)
		g.Expect(lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.ScalingDownCondition).Status).To(BeEquivalentTo("False"))
		g.Expect(s.ControlPlane.Annotations).NotTo(HaveKey(controlplanev1.ReleasedHostsAnnotation), "all is cleaned up")
		nodes := &corev1.NodeList{}
		g.Expect(workload.List(ctx, nodes)).To(Succeed())
		g.Expect(nodes.Items).To(HaveLen(s.Wanted), "one Node for each Machine")
		for _, m := range s.Machines {
			g.Expect(m.Annotations).To(HaveKey(controlplanev1.EtcdMemberHookAnnotation), "Machine %s is held", m.Name)
		}
	}).Should(Succeed())
	for _, m := range state(ctx, cluster).Machines {
		expectNode(ctx, workload, m)
		expectAgent(m)
	}
}

// expectUntouched checks that a Machine that is being deleted waits, and that nothing happens to its host.
func expectUntouched(ctx context.Context, cluster *lab.Cluster, m lab.Machine) {
	GinkgoHelper()
	Consistently(ctx, func(g Gomega) {
		s, err := cluster.State(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		at := slices.IndexFunc(s.Machines, func(other lab.Machine) bool { return other.UID == m.UID })
		g.Expect(at).NotTo(Equal(-1))
		g.Expect(s.Machines[at].Annotations).To(HaveKey(controlplanev1.EtcdMemberHookAnnotation))
		g.Expect(s.Machines[at].Host.Spec.Image).NotTo(BeNil())
		g.Expect(rackHost(m).PoweredOn()).To(BeTrue())
	}).WithTimeout(2 * quiet).WithPolling(time.Second).Should(Succeed())
}

// expectNothingLeft checks that the certificates of etcd are gone of Nodes that are gone.
func expectNothingLeft(ctx context.Context, cluster *lab.Cluster, gone ...lab.Machine) {
	GinkgoHelper()
	workload, err := cluster.Workload()
	Expect(err).NotTo(HaveOccurred())
	there := state(ctx, cluster).Machines
	for _, m := range gone {
		node := m.Status.NodeRef.Name
		if slices.ContainsFunc(there, func(other lab.Machine) bool { return other.Status.NodeRef.Name == node }) {
			continue // the host was free, and came back
		}
		for _, prefix := range []string{"etcd-peer-", "etcd-serving-", "etcd-serving-metrics-"} {
			err := workload.Get(ctx, types.NamespacedName{Namespace: "openshift-etcd", Name: prefix + node}, &corev1.Secret{})
			Expect(err).To(MatchError(apierrors.IsNotFound, "gone"), prefix+node)
		}
	}
}

// takeCensus counts the voters of etcd until it is asked how few they were.
func takeCensus(ctx context.Context, cluster *lab.Cluster) (fewest func() int) {
	ctx, stop := context.WithCancel(ctx)
	voters := math.MaxInt
	var running sync.WaitGroup
	running.Go(func() {
		utilwait.UntilWithContext(ctx, func(ctx context.Context) {
			if list, err := cluster.EtcdMembers(ctx); err == nil {
				voters = min(voters, len(slices.DeleteFunc(list, func(m lab.EtcdMember) bool { return !m.Voter })))
			}
		}, 50*time.Millisecond)
	})
	return func() int {
		stop()
		running.Wait()
		return voters
	}
}
