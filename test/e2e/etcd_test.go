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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// replaceTimeout is the timeout of the replacement of a control-plane host: its removal, the installation of
// another one, and its joining of etcd.
const replaceTimeout = installTimeout

// Each spec starts with the result of the former one: a cluster of three with a healthy etcd, and two spare
// hosts.
var _ = Describe("Etcd", Ordered, Label("etcd", independent), func() {
	var cluster *lab.Cluster

	BeforeAll(func(ctx SpecContext) {
		onlySimulated()
		cluster = apply(ctx, "compact", lab.Mutations{Namespace: "etcd", ClusterName: "quorum", EtcdMembers: true, ExtraHosts: 2})
		waitAvailable(ctx, cluster)
		expectHealthy(ctx, cluster)
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
		fewestVoters := countVoters(ctx, cluster)

		By("leaving their Nodes to Cluster API, as in a moved cluster: assisted-service deletes the Nodes of known Agents")
		agents := &aiv1beta1.AgentList{}
		Expect(laboratory.Client().List(ctx, agents, client.InNamespace(cluster.Namespace))).To(Succeed())
		for i := range agents.Items {
			patch(ctx, &agents.Items[i], `{"metadata":{"annotations":{"agent.agent-install.openshift.io/skip-spoke-cleanup":""}}}`)
		}
		deleteMachines(ctx, cluster, before...)

		By("deleting the Node that Cluster API leaves behind, as documented: otherwise the provider would wait ten minutes")
		wait(ctx, cluster, "a Node without Machine", func(s *lab.State) bool {
			return strings.Contains(lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.HostsReleasingCondition).Message,
				"Waiting until the kubelet has not reported for 10 minutes")
		})
		left := slices.DeleteFunc(slices.Clone(before), func(m lab.Machine) bool { return has(state(ctx, cluster), m) })
		Expect(left).To(HaveLen(1))
		Expect(workloadOf(cluster).Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: left[0].Status.NodeRef.Name}})).To(Succeed())
		waitReplaced(ctx, cluster, before...)
		expectHealthy(ctx, cluster)

		Expect(fewestVoters()).To(Equal(2), "the smallest number of voters")
		expectNothingLost(ctx, cluster, writer)
		expectNothingLeft(ctx, cluster, before...)
		for reason, times := range map[string]int{"EtcdMemberRemoved": 3, "HostReleased": 3} { // Events are written in the background
			Eventually(ctx, func() []corev1.Event { return events(ctx, cluster.Namespace, reason) }).Should(HaveLen(times), reason)
		}
	}, NodeTimeout(3*replaceTimeout))

	It("loses nothing when the managers crash at each of their writes", Label("nightly"), func(ctx SpecContext) {
		replaced := state(ctx, cluster).Machines[0]
		Expect(cluster.MoveEtcdLeader(ctx, replaced.Status.NodeRef.Name)).To(Succeed())
		writer := cluster.StartWriting(ctx)
		fewestVoters := countVoters(ctx, cluster)
		live := crashAtWrites(ctx, cluster.Namespace)
		deleteMachines(ctx, cluster, replaced)
		waitReplaced(ctx, cluster, replaced)
		Expect(live()).To(BeNumerically(">", 20), "crashes")
		expectHealthy(ctx, cluster)
		Expect(fewestVoters()).To(Equal(2), "the smallest number of voters")
		expectNothingLost(ctx, cluster, writer)
		expectNothingLeft(ctx, cluster, replaced)
	}, NodeTimeout(2*replaceTimeout))

	It("is scaled from three to five masters and back under writes, but not while it is upgraded", func(ctx SpecContext) {
		before := state(ctx, cluster).Machines
		writer := cluster.StartWriting(ctx)
		fewestVoters := countVoters(ctx, cluster)
		upgraded := upgrade(ctx, cluster)
		Expect(cluster.ScaleControlPlane(ctx, 5)).To(Succeed())
		Expect(waitReason(ctx, cluster, controlplanev1.ScalingUpCondition,
			controlplanev1.UpgradeInProgressReason)).To(ContainSubstring("from 3 to 5 Machines"))
		Expect(state(ctx, cluster).Machines).To(HaveLen(3))
		upgraded()
		wait(ctx, cluster, "five masters", func(s *lab.State) bool { return len(s.Machines) == 5 && s.Available() })
		expectHealthy(ctx, cluster)

		upgraded = upgrade(ctx, cluster)
		marked := before[1]
		patch(ctx, marked.DeepCopy(), `{"metadata":{"annotations":{"`+clusterv1.DeleteMachineAnnotation+`":""}}}`)
		Expect(cluster.ScaleControlPlane(ctx, 3)).To(Succeed())
		Expect(waitReason(ctx, cluster, controlplanev1.ScalingDownCondition,
			controlplanev1.UpgradeInProgressReason)).To(ContainSubstring("Machine " + marked.Name + " is not deleted"))
		Expect(state(ctx, cluster).Machines).To(HaveEach(HaveField("DeletionTimestamp", BeNil())))
		upgraded()
		wait(ctx, cluster, "three masters", func(s *lab.State) bool { return len(s.Machines) == 3 })
		expectHealthy(ctx, cluster)

		after := state(ctx, cluster)
		Expect(has(after, marked)).To(BeFalse())
		Expect(has(after, before[0])).To(BeTrue(), "only the newest of the others is deleted")
		Expect(has(after, before[2])).To(BeTrue(), "only the newest of the others is deleted")
		Expect(fewestVoters()).To(Equal(3), "the smallest number of voters")
		expectNothingLost(ctx, cluster, writer)
		expectNothingLeft(ctx, cluster, marked)
	}, NodeTimeout(3*replaceTimeout))

	It("is scaled to five masters and back though the managers crash at each of their writes", Label("nightly"), func(ctx SpecContext) {
		writer := cluster.StartWriting(ctx)
		fewestVoters := countVoters(ctx, cluster)
		live := crashAtWrites(ctx, cluster.Namespace)
		Expect(cluster.ScaleControlPlane(ctx, 5)).To(Succeed())
		wait(ctx, cluster, "five masters", func(s *lab.State) bool { return len(s.Machines) == 5 && s.Available() })
		Expect(cluster.ScaleControlPlane(ctx, 3)).To(Succeed())
		wait(ctx, cluster, "three masters", func(s *lab.State) bool { return len(s.Machines) == 3 })
		Expect(live()).To(BeNumerically(">", 40), "crashes")
		expectHealthy(ctx, cluster)
		Expect(fewestVoters()).To(Equal(3), "the smallest number of voters")
		expectNothingLost(ctx, cluster, writer)
	}, NodeTimeout(3*replaceTimeout))

	It("releases a spare host that never boots", func(ctx SpecContext) {
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
		expectHealthy(ctx, cluster)
	}, NodeTimeout(replaceTimeout))

	It("releases a dead master first, and keeps a healthy one until the dead one is replaced", func(ctx SpecContext) {
		dead, healthy := holdBehindDeadOne(ctx, cluster)
		passGraceOfEtcd(ctx, cluster)
		Expect(waitReason(ctx, cluster, controlplanev1.EtcdClusterHealthyCondition,
			controlplanev1.EtcdClusterNotHealthyReason)).To(ContainSubstring(dead.Status.NodeRef.Name))
		expectWaiting(ctx, cluster, healthy)

		By("deleting the dead one too, as the condition advises")
		deleteMachines(ctx, cluster, dead)
		wait(ctx, cluster, "without the dead one", func(s *lab.State) bool { return !has(s, dead) })
		Expect(rackHost(healthy).PoweredOn()).To(BeTrue(), "the healthy one waits for the replacement of the dead one")
		rackHost(dead).PowerOn() // it is repaired and free
		waitReplaced(ctx, cluster, dead, healthy)
		expectHealthy(ctx, cluster)
		expectNothingLeft(ctx, cluster, dead, healthy)
		expectMembersReported(ctx, cluster)
		waitReason(ctx, cluster, controlplanev1.EtcdClusterHealthyCondition, controlplanev1.EtcdClusterHealthyReason)
	}, NodeTimeout(2*replaceTimeout))

	It("removes an unreachable master, though it still runs", Label("nightly"), func(ctx SpecContext) {
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
		expectHealthy(ctx, cluster)
		expectNothingLost(ctx, cluster, writer)
		expectNothingLeft(ctx, cluster, away)
	}, NodeTimeout(2*replaceTimeout))

	It("keeps a waiting host while the API is down, and continues when the API answers", Label("nightly"), func(ctx SpecContext) {
		down, healthy := holdBehindDeadOne(ctx, cluster)

		By("stopping the API")
		cluster.Server().Process().Kill()
		Expect(waitReason(ctx, cluster, controlplanev1.HostsReleasingCondition,
			controlplanev1.ConnectionDownReason)).To(ContainSubstring(healthy.Name))
		expectWaiting(ctx, cluster, healthy)

		By("starting all again")
		Expect(cluster.Server().Process().Start(ctx)).To(Succeed())
		rackHost(down).PowerOn()
		waitReplaced(ctx, cluster, healthy)
		expectHealthy(ctx, cluster)
		Expect(has(state(ctx, cluster), down)).To(BeTrue(), "the Machine that was not deleted")
	}, NodeTimeout(2*replaceTimeout))

	It("keeps a host while another one is restarted with a new machine configuration", Label("nightly"), func(ctx SpecContext) {
		machines := state(ctx, cluster).Machines
		replaced, restarted := machines[0], machines[1]
		workload := workloadOf(cluster)
		configure := func(desired string) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: restarted.Status.NodeRef.Name}}
			annotations := fmt.Sprintf(`{"metadata":{"annotations":{"machineconfiguration.openshift.io/currentConfig":"rendered-1",`+
				`"machineconfiguration.openshift.io/desiredConfig":%q}}}`, desired)
			patchAt(ctx, workload, node, annotations)
		}
		configure("rendered-2")
		deleteMachines(ctx, cluster, replaced)
		Expect(waitReason(ctx, cluster, controlplanev1.HostsReleasingCondition, controlplanev1.WaitingForEtcdReason)).
			To(ContainSubstring("Node " + restarted.Status.NodeRef.Name + " gets another machine configuration"))
		expectWaiting(ctx, cluster, replaced)
		configure("rendered-1")
		waitReplaced(ctx, cluster, replaced)
		expectHealthy(ctx, cluster)
	}, NodeTimeout(2*replaceTimeout))

	It("is left to users if a topology has its own rules", Label("nightly"), func(ctx SpecContext) {
		replaced := state(ctx, cluster).Machines[0]
		restore := changeTopology(ctx, cluster, configv1.ExternalTopologyMode)
		deleteMachines(ctx, cluster, replaced)
		Expect(waitReason(ctx, cluster, controlplanev1.HostsReleasingCondition,
			controlplanev1.EtcdTopologyNotSupportedReason)).To(ContainSubstring("External"))
		expectWaiting(ctx, cluster, replaced)
		restore()
		patch(ctx, controlPlaneOf(cluster), `{"metadata":{"annotations":{"laboratory/look-again":""}}}`) // a real topology never changes
		waitReplaced(ctx, cluster, replaced)
		expectHealthy(ctx, cluster)
	}, NodeTimeout(2*replaceTimeout))

	It("is not changed while its quorum is lost, and continues when the quorum is restored", func(ctx SpecContext) {
		before := state(ctx, cluster).Machines
		dead, back, healthy := before[0], before[1], before[2]
		rackHost(dead).PowerOff()
		rackHost(back).PowerOff()
		deleteMachines(ctx, cluster, healthy, dead)
		Expect(waitReason(ctx, cluster, controlplanev1.HostsReleasingCondition,
			controlplanev1.EtcdQuorumAtRiskReason)).To(ContainSubstring("quorum"))
		expectWaiting(ctx, cluster, healthy)

		By("starting one again: the dead one is removed and replaced, then the healthy one")
		rackHost(back).PowerOn()
		wait(ctx, cluster, "without the dead one", func(s *lab.State) bool { return !has(s, dead) })
		rackHost(dead).PowerOn()
		waitReplaced(ctx, cluster, dead, healthy)
		expectHealthy(ctx, cluster)
	}, NodeTimeout(2*replaceTimeout))

	It("is not queried when the whole Cluster is deleted, even if its quorum is lost", func(ctx SpecContext) {
		machines := state(ctx, cluster).Machines
		rackHost(machines[0]).PowerOff()
		rackHost(machines[1]).PowerOff()
		deleteMachines(ctx, cluster, machines[2])
		waitReason(ctx, cluster, controlplanev1.HostsReleasingCondition, controlplanev1.EtcdQuorumAtRiskReason)
		expectDeleted(ctx, cluster)
	}, NodeTimeout(deleteTimeout+2*soon))
})

var _ = Describe("A master whose server and BMC are dead", Label("etcd"), func() {
	It("has a successor while its Machine hangs, and is deleted with its BareMetalHost", func(ctx SpecContext) {
		onlySimulated()
		cluster := apply(ctx, "compact", lab.Mutations{Namespace: "dead-bmc", ClusterName: "replaced", EtcdMembers: true, ExtraHosts: 1})
		waitAvailable(ctx, cluster)
		expectHealthy(ctx, cluster)
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

		By("waiting half an hour")
		passHalfAnHour(ctx, cluster)
		Expect(waitReason(ctx, cluster, controlplanev1.HostsReleasingCondition,
			controlplanev1.InfrastructureDeletionStuckReason)).To(And(ContainSubstring(dead.Name), ContainSubstring("allow-deletion")))
		wait(ctx, cluster, "a running successor", func(s *lab.State) bool {
			return len(s.Machines) == 4 && has(s, dead) && !slices.ContainsFunc(s.Machines,
				func(m lab.Machine) bool { return !m.Status.NodeRef.IsDefined() })
		})

		By("deleting the BareMetalHost, as the condition advises")
		annotate(ctx, dead.Host, "bootstrap.cluster.x-k8s.io/allow-deletion", "true")
		Expect(laboratory.Client().Delete(ctx, dead.Host)).To(Succeed())
		waitReplaced(ctx, cluster, dead)
		expectHealthy(ctx, cluster)
		expectMembersReported(ctx, cluster)
		Expect(cluster.WipedMembers()).To(BeEmpty(), "hosts whose disks were wiped while they voted")
	}, NodeTimeout(installTimeout+2*replaceTimeout))
})

// released matches the time in the record of released hosts.
var released = regexp.MustCompile(`"released":"[^"]+"`)

// passHalfAnHour sets the release of hosts to an hour ago.
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

// holdBehindDeadOne switches a master off and deletes a healthy one, which has to wait for the dead one.
func holdBehindDeadOne(ctx context.Context, cluster *lab.Cluster) (dead, healthy lab.Machine) {
	GinkgoHelper()
	machines := state(ctx, cluster).Machines
	dead, healthy = machines[0], machines[1]
	rackHost(dead).PowerOff()
	Eventually(cluster.EtcdSettled).WithContext(ctx).Should(HaveOccurred()) // a rollout at its end is reported before its failure
	expectMembersReported(ctx, cluster, dead)
	deleteMachines(ctx, cluster, healthy)
	Expect(waitReason(ctx, cluster, controlplanev1.HostsReleasingCondition, controlplanev1.EtcdQuorumAtRiskReason)).
		To(And(ContainSubstring(healthy.Name), ContainSubstring(dead.Status.NodeRef.Name)), "the waiting Machine, and the dead Node")
	Expect(lab.Condition(state(ctx, cluster).ControlPlane.Status.Conditions, controlplanev1.ScalingDownCondition)).
		To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", BeEmpty())), "spec.replicas is not changed")
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

// passGraceOfEtcd sets the start of the degraded state of ClusterOperator etcd to an hour ago.
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

// rackHost returns the server of a Machine.
func rackHost(m lab.Machine) *hosts.Host {
	return laboratory.Rack.Host(path.Join(m.Host.Namespace, m.Host.Name))
}

func has(s *lab.State, m lab.Machine) bool {
	return slices.ContainsFunc(s.Machines, func(other lab.Machine) bool { return other.UID == m.UID })
}

// waitReplaced waits until other Machines, possibly with the same names, have replaced the given ones.
func waitReplaced(ctx context.Context, cluster *lab.Cluster, deleted ...lab.Machine) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(len(deleted))*replaceTimeout)
	defer cancel()
	Expect(cluster.Wait(ctx, "replaced", func(s *lab.State) bool {
		return s.Available() && !slices.ContainsFunc(deleted, func(m lab.Machine) bool { return has(s, m) })
	})).To(Succeed())
}

// expectHealthy checks the properties of a cluster with etcd members, even if its Machines changed since the
// installation.
func expectHealthy(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	Eventually(cluster.EtcdSettled).WithContext(ctx).Should(Succeed())
	workload := workloadOf(cluster)
	Eventually(ctx, func(g Gomega) {
		s, err := cluster.State(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Available()).To(BeTrue())
		expectControlPlane(g, s)
		for _, kind := range []string{controlplanev1.ScalingDownCondition, controlplanev1.HostsReleasingCondition} {
			g.Expect(lab.Condition(s.ControlPlane.Status.Conditions, kind).Status).To(BeEquivalentTo("False"), kind)
		}
		g.Expect(s.ControlPlane.Annotations).NotTo(HaveKey(controlplanev1.ReleasedHostsAnnotation), "the cleanup is finished")
		nodes := &corev1.NodeList{}
		g.Expect(workload.List(ctx, nodes)).To(Succeed())
		g.Expect(nodes.Items).To(HaveLen(s.Wanted), "one Node for each Machine")
		for _, m := range s.Machines {
			g.Expect(m.Annotations).To(HaveKey(controlplanev1.EtcdMemberHookAnnotation), "Machine %s has the hook", m.Name)
		}
	}).Should(Succeed())
	for _, m := range state(ctx, cluster).Machines {
		expectNode(ctx, workload, m)
		expectAgent(m)
	}
}

// expectWaiting checks that a Machine that is being deleted waits, and that its host does not change.
func expectWaiting(ctx context.Context, cluster *lab.Cluster, m lab.Machine) {
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

// expectNothingLeft checks that the etcd certificates of deleted Nodes are deleted.
func expectNothingLeft(ctx context.Context, cluster *lab.Cluster, deleted ...lab.Machine) {
	GinkgoHelper()
	workload := workloadOf(cluster)
	existing := state(ctx, cluster).Machines
	for _, m := range deleted {
		node := m.Status.NodeRef.Name
		if slices.ContainsFunc(existing, func(other lab.Machine) bool { return other.Status.NodeRef.Name == node }) {
			continue // the host was free, and joined again
		}
		for _, prefix := range []string{"etcd-peer-", "etcd-serving-", "etcd-serving-metrics-"} {
			err := workload.Get(ctx, types.NamespacedName{Namespace: "openshift-etcd", Name: prefix + node}, &corev1.Secret{})
			Expect(err).To(MatchError(apierrors.IsNotFound, "gone"), prefix+node)
		}
	}
}

// expectNothingLost checks that all writes exist that etcd acknowledged to a writer.
func expectNothingLost(ctx context.Context, cluster *lab.Cluster, writer *lab.Writer) {
	GinkgoHelper()
	acknowledged := writer.Stop()
	Expect(acknowledged).NotTo(BeEmpty())
	lost, err := cluster.Lost(ctx, acknowledged)
	Expect(err).NotTo(HaveOccurred())
	Expect(lost).To(BeEmpty(), "acknowledged writes that do not exist")
}

// upgrade makes the cluster report an upgrade until done. Then it reports its former release again.
func upgrade(ctx context.Context, cluster *lab.Cluster) (done func()) {
	GinkgoHelper()
	workload := workloadOf(cluster)
	change := func(change func(*configv1.ClusterVersionStatus)) {
		GinkgoHelper()
		Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error { // its own operator writes as well
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
	waitRollingOut(ctx, cluster, "to v4.99.0") // a scaling before the provider notices the upgrade is carried out
	return func() {
		GinkgoHelper()
		change(func(status *configv1.ClusterVersionStatus) { status.History = status.History[1:] })
	}
}

// changeTopology makes a cluster report another topology of its control plane, until restore.
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

// countVoters counts the voters of etcd until fewest is called, which returns the smallest number.
func countVoters(ctx context.Context, cluster *lab.Cluster) (fewest func() int) {
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
