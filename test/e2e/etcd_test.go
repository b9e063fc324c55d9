package e2e

import (
	"context"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// replaceTimeout is what the replacement of a control-plane host may take: its removal, the installation of another, and its way into etcd.
const replaceTimeout = installTimeout

// Each spec begins with what the one before left: a cluster of three, of whose etcd all is well, and two spare hosts.
var _ = Describe("Etcd", Ordered, Label("etcd"), func() {
	var cluster *lab.Cluster

	BeforeAll(func(ctx SpecContext) {
		onlySimulated()
		cluster = apply(ctx, "compact", lab.Mutations{Namespace: "etcd", ClusterName: "quorum", EtcdMembers: true, ExtraHosts: 2})
		waitAvailable(ctx, cluster)
		expectWell(ctx, cluster)
	}, NodeTimeout(installTimeout+soon))

	AfterEach(func() {
		if cluster != nil {
			Expect(cluster.WipedMembers()).To(BeEmpty(), "hosts whose disks were wiped while they voted")
		}
	})

	It("loses neither its quorum nor a write when all masters are deleted at once", func(ctx SpecContext) {
		before := state(ctx, cluster).Machines
		Expect(cluster.MoveEtcdLeader(ctx, before[0].Status.NodeRef.Name)).To(Succeed())
		writer := cluster.StartWriting(ctx)
		census := takeCensus(ctx, cluster)

		By("leaving their Nodes to Cluster API, as in a cluster that was moved: assisted-service deletes the Nodes of the Agents that it knows")
		agents := &aiv1beta1.AgentList{}
		Expect(laboratory.Client().List(ctx, agents, client.InNamespace(cluster.Namespace))).To(Succeed())
		for i := range agents.Items {
			patch(ctx, &agents.Items[i], `{"metadata":{"annotations":{"agent.agent-install.openshift.io/skip-spoke-cleanup":""}}}`)
		}
		deleteMachines(ctx, cluster, before...)

		By("deleting the Node that Cluster API leaves behind, as documented: its host is off, and the provider would wait ten minutes")
		wait(ctx, cluster, "a Node without Machine", func(s *lab.State) bool {
			return strings.Contains(lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.ScalingDownCondition).Message,
				"Waiting until the kubelet has not reported for 10 minutes")
		})
		left := slices.DeleteFunc(slices.Clone(before), func(m lab.Machine) bool { return has(state(ctx, cluster), m) })
		Expect(left).To(HaveLen(1))
		Expect(workloadOf(cluster).Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: left[0].Status.NodeRef.Name}})).To(Succeed())
		waitReplaced(ctx, cluster, before...)
		expectWell(ctx, cluster)

		Expect(census()).To(Equal(2), "voters, when they were fewest")
		expectNothingLost(ctx, cluster, writer)
		expectNothingLeft(ctx, cluster, before...)
		for reason, times := range map[string]int{"EtcdMemberRemoved": 3, "HostReleased": 3} { // Events are written in the background
			Eventually(ctx, func() []corev1.Event { return events(ctx, cluster.Namespace, reason) }).Should(HaveLen(times), reason)
		}
	}, NodeTimeout(3*replaceTimeout))

	It("loses nothing when the managers die at each of their writes", Label("nightly"), func(ctx SpecContext) {
		gone := state(ctx, cluster).Machines[0]
		Expect(cluster.MoveEtcdLeader(ctx, gone.Status.NodeRef.Name)).To(Succeed())
		writer := cluster.StartWriting(ctx)
		census := takeCensus(ctx, cluster)
		live := makeMortal(ctx, cluster.Namespace)
		deleteMachines(ctx, cluster, gone)
		waitReplaced(ctx, cluster, gone)
		Expect(live()).To(BeNumerically(">", 20), "deaths")
		expectWell(ctx, cluster)
		Expect(census()).To(Equal(2), "voters, when they were fewest")
		expectNothingLost(ctx, cluster, writer)
		expectNothingLeft(ctx, cluster, gone)
	}, NodeTimeout(2*replaceTimeout))

	It("is scaled from three to five masters and back under writes, but not while it is upgraded", func(ctx SpecContext) {
		before := state(ctx, cluster).Machines
		writer := cluster.StartWriting(ctx)
		census := takeCensus(ctx, cluster)
		upgraded := upgrade(ctx, cluster)
		Expect(cluster.ScaleControlPlane(ctx, 5)).To(Succeed())
		Expect(waitReason(ctx, cluster, controlplanev1.ScalingUpCondition,
			controlplanev1.UpgradeInProgressReason)).To(ContainSubstring("from 3 to 5 Machines"))
		Expect(state(ctx, cluster).Machines).To(HaveLen(3))
		upgraded()
		wait(ctx, cluster, "five masters", func(s *lab.State) bool { return len(s.Machines) == 5 && s.Available() })
		expectWell(ctx, cluster)

		upgraded = upgrade(ctx, cluster)
		marked := before[1]
		patch(ctx, marked.DeepCopy(), `{"metadata":{"annotations":{"`+clusterv1.DeleteMachineAnnotation+`":""}}}`)
		Expect(cluster.ScaleControlPlane(ctx, 3)).To(Succeed())
		Expect(waitReason(ctx, cluster, controlplanev1.ScalingDownCondition,
			controlplanev1.UpgradeInProgressReason)).To(ContainSubstring("Machine " + marked.Name + " is not deleted"))
		Expect(state(ctx, cluster).Machines).To(HaveEach(HaveField("DeletionTimestamp", BeNil())))
		upgraded()
		wait(ctx, cluster, "three masters", func(s *lab.State) bool { return len(s.Machines) == 3 })
		expectWell(ctx, cluster)

		after := state(ctx, cluster)
		Expect(has(after, marked)).To(BeFalse())
		Expect(has(after, before[0])).To(BeTrue(), "of the others the newest goes")
		Expect(has(after, before[2])).To(BeTrue(), "of the others the newest goes")
		Expect(census()).To(Equal(3), "voters, when they were fewest")
		expectNothingLost(ctx, cluster, writer)
		expectNothingLeft(ctx, cluster, marked)
	}, NodeTimeout(3*replaceTimeout))

	It("is scaled to five masters and back though the managers die at each of their writes", Label("nightly"), func(ctx SpecContext) {
		writer := cluster.StartWriting(ctx)
		census := takeCensus(ctx, cluster)
		live := makeMortal(ctx, cluster.Namespace)
		Expect(cluster.ScaleControlPlane(ctx, 5)).To(Succeed())
		wait(ctx, cluster, "five masters", func(s *lab.State) bool { return len(s.Machines) == 5 && s.Available() })
		Expect(cluster.ScaleControlPlane(ctx, 3)).To(Succeed())
		wait(ctx, cluster, "three masters", func(s *lab.State) bool { return len(s.Machines) == 3 })
		Expect(live()).To(BeNumerically(">", 40), "deaths")
		expectWell(ctx, cluster)
		Expect(census()).To(Equal(3), "voters, when they were fewest")
		expectNothingLost(ctx, cluster, writer)
	}, NodeTimeout(3*replaceTimeout))

	It("gives up a spare host that never boots", func(ctx SpecContext) {
		before := state(ctx, cluster)
		for _, created := range cluster.Hosts {
			if host := hostOf(ctx, created.Namespace, created.Name); !slices.ContainsFunc(before.Machines,
				func(m lab.Machine) bool { return rackHost(m) == host }) {
				host.PowerOff()
				defer host.PowerOn()
			}
		}
		Expect(cluster.ScaleControlPlane(ctx, 4)).To(Succeed())
		wait(ctx, cluster, "a host for the fourth", func(s *lab.State) bool { return len(s.Machines) == 4 && everyMachineHasHost(s) })
		Expect(cluster.ScaleControlPlane(ctx, 3)).To(Succeed())
		s := wait(ctx, cluster, "three masters", func(s *lab.State) bool { return len(s.Machines) == 3 })
		for _, m := range before.Machines {
			Expect(has(s, m)).To(BeTrue(), m.Name)
		}
		expectWell(ctx, cluster)
	}, NodeTimeout(replaceTimeout))

	It("lets a dead master go first, and keeps a healthy one until the dead one is replaced", func(ctx SpecContext) {
		dead, healthy := holdBehindDeadOne(ctx, cluster)
		passGraceOfEtcd(ctx, cluster)
		Expect(waitReason(ctx, cluster, controlplanev1.EtcdClusterHealthyCondition,
			controlplanev1.EtcdClusterNotHealthyReason)).To(ContainSubstring(dead.Status.NodeRef.Name))
		expectUntouched(ctx, cluster, healthy)

		By("deleting the dead one too, as the condition says")
		deleteMachines(ctx, cluster, dead)
		wait(ctx, cluster, "without the dead one", func(s *lab.State) bool { return !has(s, dead) })
		Expect(rackHost(healthy).PoweredOn()).To(BeTrue(), "until the dead one is replaced")
		rackHost(dead).PowerOn() // it is repaired, and free
		waitReplaced(ctx, cluster, dead, healthy)
		expectWell(ctx, cluster)
		expectNothingLeft(ctx, cluster, dead, healthy)
		expectMembersReported(ctx, cluster)
		waitReason(ctx, cluster, controlplanev1.EtcdClusterHealthyCondition, controlplanev1.EtcdClusterHealthyReason)
	}, NodeTimeout(2*replaceTimeout))

	It("gives up a master that nobody reaches, though it runs on", Label("nightly"), func(ctx SpecContext) {
		away := state(ctx, cluster).Machines[0]
		node := away.Status.NodeRef.Name
		Expect(cluster.MoveEtcdLeader(ctx, node)).To(Succeed())
		writer := cluster.StartWriting(ctx)
		heal := cluster.Etcd().Network().Cut(cluster.Etcd().Address(node))
		defer heal()
		loseNode(ctx, cluster, node)
		deleteMachines(ctx, cluster, away)
		wait(ctx, cluster, "without it", func(s *lab.State) bool { return !has(s, away) })
		heal()
		waitReplaced(ctx, cluster, away)
		expectWell(ctx, cluster)
		expectNothingLost(ctx, cluster, writer)
		expectNothingLeft(ctx, cluster, away)
	}, NodeTimeout(2*replaceTimeout))

	It("keeps a host that waits while the API is away, and goes on when it is back", Label("nightly"), func(ctx SpecContext) {
		down, healthy := holdBehindDeadOne(ctx, cluster)

		By("taking the API away")
		cluster.Server().Process().Kill()
		Expect(waitReason(ctx, cluster, controlplanev1.ScalingDownCondition,
			controlplanev1.ConnectionDownReason)).To(ContainSubstring(healthy.Name))
		expectUntouched(ctx, cluster, healthy)

		By("bringing all back")
		Expect(cluster.Server().Process().Start(ctx)).To(Succeed())
		rackHost(down).PowerOn()
		waitReplaced(ctx, cluster, healthy)
		expectWell(ctx, cluster)
		Expect(has(state(ctx, cluster), down)).To(BeTrue(), "which was never to go")
	}, NodeTimeout(2*replaceTimeout))

	It("keeps a host while another is restarted with another machine configuration", Label("nightly"), func(ctx SpecContext) {
		machines := state(ctx, cluster).Machines
		gone, restarted := machines[0], machines[1]
		workload := workloadOf(cluster)
		configure := func(desired string) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: restarted.Status.NodeRef.Name}}
			annotations := fmt.Sprintf(`{"metadata":{"annotations":{"machineconfiguration.openshift.io/currentConfig":"rendered-1","machineconfiguration.openshift.io/desiredConfig":%q}}}`, desired)
			patchAt(ctx, workload, node, annotations)
		}
		configure("rendered-2")
		deleteMachines(ctx, cluster, gone)
		Expect(waitReason(ctx, cluster, controlplanev1.ScalingDownCondition, controlplanev1.WaitingForEtcdReason)).
			To(ContainSubstring("Node " + restarted.Status.NodeRef.Name + " is given another machine configuration"))
		expectUntouched(ctx, cluster, gone)
		configure("rendered-1")
		waitReplaced(ctx, cluster, gone)
		expectWell(ctx, cluster)
	}, NodeTimeout(2*replaceTimeout))

	It("is left to people where a topology has rules of its own", Label("nightly"), func(ctx SpecContext) {
		gone := state(ctx, cluster).Machines[0]
		restore := changeTopology(ctx, cluster, configv1.ExternalTopologyMode)
		deleteMachines(ctx, cluster, gone)
		Expect(waitReason(ctx, cluster, controlplanev1.ScalingDownCondition,
			controlplanev1.EtcdTopologyNotSupportedReason)).To(ContainSubstring("External"))
		expectUntouched(ctx, cluster, gone)
		restore()
		patch(ctx, controlPlaneOf(cluster), `{"metadata":{"annotations":{"laboratory/look-again":""}}}`) // a topology never changes in fact
		waitReplaced(ctx, cluster, gone)
		expectWell(ctx, cluster)
	}, NodeTimeout(2*replaceTimeout))

	It("is not touched while its quorum is lost, and goes on when it is back", func(ctx SpecContext) {
		before := state(ctx, cluster).Machines
		dead, back, healthy := before[0], before[1], before[2]
		rackHost(dead).PowerOff()
		rackHost(back).PowerOff()
		deleteMachines(ctx, cluster, healthy, dead)
		Expect(waitReason(ctx, cluster, controlplanev1.ScalingDownCondition,
			controlplanev1.EtcdQuorumAtRiskReason)).To(ContainSubstring("quorum"))
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

var _ = Describe("A master whose server and BMC are dead", Label("etcd"), func() {
	It("has a successor while its Machine hangs, and goes when its BareMetalHost is deleted", func(ctx SpecContext) {
		onlySimulated()
		cluster := apply(ctx, "compact", lab.Mutations{Namespace: "dead-bmc", ClusterName: "replaced", EtcdMembers: true, ExtraHosts: 1})
		waitAvailable(ctx, cluster)
		expectWell(ctx, cluster)
		dead := state(ctx, cluster).Machines[0]
		rackHost(dead).FailTask(hosts.Deprovisioning, "the BMC does not answer")
		rackHost(dead).PowerOff()
		loseNode(ctx, cluster, dead.Status.NodeRef.Name)
		Eventually(cluster.EtcdSettled).WithContext(ctx).Should(HaveOccurred())
		deleteMachines(ctx, cluster, dead)
		wait(ctx, cluster, "released", func(s *lab.State) bool {
			at := slices.IndexFunc(s.Machines, func(m lab.Machine) bool { return m.UID == dead.UID })
			return lab.Condition(s.Machines[at].Status.Conditions,
				clusterv1.MachineDeletingCondition).Reason == clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason
		})

		By("letting half an hour pass")
		passHalfAnHour(ctx, cluster)
		Expect(waitReason(ctx, cluster, controlplanev1.ScalingDownCondition,
			controlplanev1.InfrastructureDeletionStuckReason)).To(And(ContainSubstring(dead.Name), ContainSubstring("allow-deletion")))
		wait(ctx, cluster, "a successor that runs", func(s *lab.State) bool {
			return len(s.Machines) == 4 && has(s, dead) && !slices.ContainsFunc(s.Machines,
				func(m lab.Machine) bool { return !m.Status.NodeRef.IsDefined() })
		})

		By("deleting the BareMetalHost, as the condition says")
		annotate(ctx, dead.Host, "bootstrap.cluster.x-k8s.io/allow-deletion", "true")
		Expect(laboratory.Client().Delete(ctx, dead.Host)).To(Succeed())
		waitReplaced(ctx, cluster, dead)
		expectWell(ctx, cluster)
		expectMembersReported(ctx, cluster)
		Expect(cluster.WipedMembers()).To(BeEmpty(), "hosts whose disks were wiped while they voted")
	}, NodeTimeout(installTimeout+2*replaceTimeout))
})

// released is the time in the record of released hosts.
var released = regexp.MustCompile(`"released":"[^"]+"`)

// passHalfAnHour makes hosts that were released have been so for an hour.
func passHalfAnHour(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		cp := controlPlaneOf(cluster)
		g.Expect(laboratory.Client().Get(ctx, client.ObjectKeyFromObject(cp), cp)).To(Succeed())
		before := cp.DeepCopy()
		record := cp.GetAnnotations()[controlplanev1.ReleasedHostsAnnotation]
		g.Expect(record).To(MatchRegexp(released.String()))
		hourAgo := fmt.Sprintf("%q:%q", "released", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
		metav1.SetMetaDataAnnotation(&cp.ObjectMeta, controlplanev1.ReleasedHostsAnnotation, released.ReplaceAllString(record, hourAgo))
		g.Expect(laboratory.Client().Patch(ctx, cp, client.MergeFrom(before))).To(Succeed())
	}).Should(Succeed())
}

func deleteMachines(ctx context.Context, cluster *lab.Cluster, machines ...lab.Machine) {
	GinkgoHelper()
	for _, m := range machines {
		Expect(cluster.DeleteMachine(ctx, m)).To(Succeed())
	}
}

// holdBehindDeadOne switches a master off and deletes a healthy one, which is to wait for it.
func holdBehindDeadOne(ctx context.Context, cluster *lab.Cluster) (dead, healthy lab.Machine) {
	GinkgoHelper()
	machines := state(ctx, cluster).Machines
	dead, healthy = machines[0], machines[1]
	rackHost(dead).PowerOff()
	Eventually(cluster.EtcdSettled).WithContext(ctx).Should(HaveOccurred()) // what is rolled out when it goes is told before that it is down
	expectMembersReported(ctx, cluster, dead)
	deleteMachines(ctx, cluster, healthy)
	Expect(waitReason(ctx, cluster, controlplanev1.ScalingDownCondition, controlplanev1.EtcdQuorumAtRiskReason)).
		To(And(ContainSubstring(healthy.Name), ContainSubstring(dead.Status.NodeRef.Name)), "whom it holds, and who is down")
	return dead, healthy
}

// expectMembersReported expects that the Machines report which etcd members are down, and no other.
func expectMembersReported(ctx context.Context, cluster *lab.Cluster, down ...lab.Machine) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		for _, m := range state(ctx, cluster).Machines {
			status := metav1.ConditionTrue
			if slices.ContainsFunc(down, func(other lab.Machine) bool { return other.UID == m.UID }) {
				status = metav1.ConditionFalse
			}
			g.Expect(lab.Condition(m.Status.Conditions, controlplanev1.EtcdMemberHealthyCondition).Status).To(Equal(status), m.Name)
		}
	}).Should(Succeed())
}

// passGraceOfEtcd makes ClusterOperator etcd, which is degraded, have been so for an hour.
func passGraceOfEtcd(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	workload := workloadOf(cluster)
	Eventually(ctx, func(g Gomega) {
		operator := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "etcd"}}
		g.Expect(workload.Get(ctx, client.ObjectKeyFromObject(operator), operator)).To(Succeed())
		at := slices.IndexFunc(operator.Status.Conditions,
			func(c configv1.ClusterOperatorStatusCondition) bool { return c.Type == configv1.OperatorDegraded })
		g.Expect(operator.Status.Conditions[at].Status).To(Equal(configv1.ConditionTrue))
		operator.Status.Conditions[at].LastTransitionTime = metav1.NewTime(time.Now().Add(-time.Hour))
		g.Expect(workload.Status().Update(ctx, operator)).To(Succeed())
	}).Should(Succeed())
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
	workload := workloadOf(cluster)
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
	}).WithTimeout(quiet).WithPolling(time.Second).Should(Succeed())
}

// expectNothingLeft checks that the certificates of etcd are gone of Nodes that are gone.
func expectNothingLeft(ctx context.Context, cluster *lab.Cluster, gone ...lab.Machine) {
	GinkgoHelper()
	workload := workloadOf(cluster)
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

// expectNothingLost checks that everything is there that etcd acknowledged to a writer.
func expectNothingLost(ctx context.Context, cluster *lab.Cluster, writer *lab.Writer) {
	GinkgoHelper()
	acknowledged := writer.Stop()
	Expect(acknowledged).NotTo(BeEmpty())
	lost, err := cluster.Lost(ctx, acknowledged)
	Expect(err).NotTo(HaveOccurred())
	Expect(lost).To(BeEmpty(), "what was acknowledged, and is not there")
}

// upgrade makes the cluster say that it is being upgraded, until the upgrade is done. It goes back to where it was,
// which says the same of its release as before.
func upgrade(ctx context.Context, cluster *lab.Cluster) (done func()) {
	GinkgoHelper()
	workload := workloadOf(cluster)
	change := func(change func(*configv1.ClusterVersionStatus)) {
		GinkgoHelper()
		Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error { // its own operator writes, too
			version := &configv1.ClusterVersion{}
			if err := workload.Get(ctx, types.NamespacedName{Name: "version"}, version); err != nil {
				return err
			}
			change(&version.Status)
			return workload.Status().Update(ctx, version)
		})).To(Succeed())
	}
	change(func(status *configv1.ClusterVersionStatus) {
		next := configv1.UpdateHistory{
			State: configv1.PartialUpdate, StartedTime: metav1.Now(), Version: "4.99.0",
			Image: status.History[0].Image,
		}
		status.History = slices.Insert(status.History, 0, next)
	})
	waitRollingOut(ctx, cluster, "to v4.99.0") // what is scaled before the provider knows is scaled
	return func() {
		GinkgoHelper()
		change(func(status *configv1.ClusterVersionStatus) { status.History = status.History[1:] })
	}
}

// changeTopology makes a cluster tell another topology of its control plane, until restore.
func changeTopology(ctx context.Context, cluster *lab.Cluster, topology configv1.TopologyMode) (restore func()) {
	GinkgoHelper()
	workload := workloadOf(cluster)
	infrastructure := &configv1.Infrastructure{}
	Expect(workload.Get(ctx, types.NamespacedName{Name: "cluster"}, infrastructure)).To(Succeed())
	before := infrastructure.Status.ControlPlaneTopology
	write := func(topology configv1.TopologyMode) {
		GinkgoHelper()
		infrastructure.Status.ControlPlaneTopology = topology
		Expect(workload.Status().Update(ctx, infrastructure)).To(Succeed())
	}
	write(topology)
	return func() {
		GinkgoHelper()
		write(before)
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
		}, 250*time.Millisecond)
	})
	return func() int {
		stop()
		running.Wait()
		return voters
	}
}
