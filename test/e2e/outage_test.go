package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// The second spec starts with the result of the first.
var _ = Describe("An upgrade during an outage", Ordered, Label("upgrade", "nightly"), func() {
	const first, second = nextPatch, "4.19.21"
	var cluster *lab.Cluster
	var before *lab.State

	BeforeAll(func(ctx SpecContext) {
		onlySimulated()
		cluster = apply(ctx, "compact", lab.Mutations{Namespace: "outage", ClusterName: "outage", EtcdMembers: true, ExtraHosts: 1})
		waitAvailable(ctx, cluster)
		expectHealthy(ctx, cluster)
		before = state(ctx, cluster)
		publish(cluster, first, patches)
		publish(cluster, second, patches)
	}, NodeTimeout(installTimeout+soon))

	It("of its API reports the last known state, and repeats no request", func(ctx SpecContext) {
		cluster.Versions().Block("machine-config")
		changeSpec(ctx, cluster, `{"distributionVersion":"`+first+`","upgrade":{"channel":"`+patches+`"}}`)
		waitRollingOut(ctx, cluster, "waiting on machine-config")
		last := wait(ctx, cluster, "reporting its progress", func(s *lab.State) bool { return s.ControlPlane.Status.Upgrade.Percentage != nil })
		generation := generationOf(ctx, cluster)

		By("stopping the API, and then the managers")
		cluster.Server().Process().Kill()
		for _, act := range []func(){func() {}, func() { kill(ctx) }} {
			act()
			waitRollingOut(ctx, cluster, "to v"+first+", whose API server does not answer now")
			expectAsBefore(ctx, cluster, before, func(g Gomega, s *lab.State) {
				g.Expect(s.ControlPlane.Status.Upgrade).To(Equal(last.ControlPlane.Status.Upgrade))
				g.Expect(s.ControlPlane.Status.Versions).To(Equal(last.ControlPlane.Status.Versions))
				g.Expect(lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.RollingOutCondition).Status).To(Equal(metav1.ConditionTrue))
			})
		}

		By("starting it again")
		Expect(cluster.Server().Process().Start(ctx)).To(Succeed())
		waitRollingOut(ctx, cluster, "waiting on machine-config")
		Expect(generationOf(ctx, cluster)).To(Equal(generation), "the request was not repeated")
		cluster.Versions().Recover("machine-config")
		expectUpgraded(ctx, cluster, first)
		Expect(generationOf(ctx, cluster)).To(Equal(generation))
		requested := 0
		for _, e := range events(ctx, cluster.Namespace, "UpgradeRequested") {
			requested += int(max(1, e.Count))
		}
		Expect(requested).To(Equal(1))
		expectUnwiped(ctx, cluster, before)
		expectHealthy(ctx, cluster)
	}, NodeTimeout(2*installTimeout))

	It("of a master waits for its host, and its Machine is not replaced", func(ctx SpecContext) {
		Expect(laboratory.Client().Create(ctx, healthCheckOfMasters(cluster))).To(Succeed())
		lost, boots := before.Machines[0], bootCounts(state(ctx, cluster))
		cluster.Versions().Block("kube-apiserver")
		changeSpec(ctx, cluster, `{"distributionVersion":"`+second+`","upgrade":{"channel":"`+patches+`"}}`)
		waitRollingOut(ctx, cluster, "waiting on kube-apiserver")

		By("losing it before the hosts are restarted")
		rackHost(lost).PowerOff()
		loseNode(ctx, cluster, lost.Status.NodeRef.Name)
		cluster.Versions().Recover("kube-apiserver")
		waitRollingOut(ctx, cluster, "waiting on machine-config")
		s := wait(ctx, cluster, "being found unhealthy, and not replaced", func(s *lab.State) bool {
			return lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.RemediatingCondition).Status == metav1.ConditionTrue
		})
		Expect(lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.RemediatingCondition).Message).To(And(
			ContainSubstring(lost.Name), ContainSubstring("is being upgraded to "+second),
			ContainSubstring("delete the Machine, which wipes the host")))
		Expect(lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.MachinesReadyCondition)).To(And(HaveField("Status",
			metav1.ConditionFalse), HaveField("Message", ContainSubstring(lost.Name))))
		expectAsBefore(ctx, cluster, before, func(g Gomega, s *lab.State) {
			g.Expect(lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.RollingOutCondition)).To(And(
				HaveField("Status", metav1.ConditionTrue), HaveField("Message", ContainSubstring("waiting on machine-config"))))
			version, err := cluster.Versions().ClusterVersion(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(version.Status.History[0].State).To(Equal(configv1.PartialUpdate))
			for _, m := range s.Machines {
				g.Expect(rackHost(m).Boots()).To(HaveLen(boots[m.Name]), "no other host is restarted")
			}
		})

		By("starting it again")
		rackHost(lost).PowerOn()
		expectUpgraded(ctx, cluster, second)
		expectUnwiped(ctx, cluster, before)
		for _, m := range state(ctx, cluster).Machines {
			more := 1
			if m.UID == lost.UID {
				more = 2
			}
			Expect(rackHost(m).Boots()).To(HaveLen(boots[m.Name]+more), "boots of %s", m.Name)
		}
		Expect(events(ctx, cluster.Namespace, "MachineRemediated")).To(BeEmpty())
		expectHealthy(ctx, cluster)
	}, NodeTimeout(2*installTimeout))
})

// generationOf returns the generation of the ClusterVersion: the number of writes of its spec.
func generationOf(ctx context.Context, cluster *lab.Cluster) int64 {
	GinkgoHelper()
	version, err := cluster.Versions().ClusterVersion(ctx)
	Expect(err).NotTo(HaveOccurred())
	return version.Generation
}

// expectAsBefore checks for a while that no Machine is created or deleted, and that a condition holds.
func expectAsBefore(ctx context.Context, cluster *lab.Cluster, before *lab.State, check func(Gomega, *lab.State)) {
	GinkgoHelper()
	Consistently(ctx, func(g Gomega) {
		s, err := cluster.State(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Machines).To(HaveLen(len(before.Machines)))
		for _, m := range s.Machines {
			g.Expect(has(before, m)).To(BeTrue(), "Machine %s is new", m.Name)
			g.Expect(m.DeletionTimestamp.IsZero()).To(BeTrue(), "Machine %s is deleted", m.Name)
		}
		check(g, s)
	}).WithTimeout(2 * quiet).WithPolling(quiet / 20).Should(Succeed())
}
