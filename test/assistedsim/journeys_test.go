package assistedsim

import (
	"slices"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

func singleNodeOfABoundInfraEnv(b bed) {
	ns := b.namespace()
	ie := b.infraEnv(ns, "ie2", &aiv1beta1.ClusterReference{Namespace: ns, Name: "c2"})
	b.Eventually(func() string {
		b.Expect(b.client.Get(b.ctx, client.ObjectKeyFromObject(ie), ie)).To(Succeed())
		if len(ie.Status.Conditions) == 0 {
			return ""
		}
		return ie.Status.Conditions[0].Reason
	}).Should(Equal(missingClusterDeploymentReason))
	ie.Spec.AgentApproval = &AgentApproval{AutoApprove: true}
	b.Expect(b.client.Update(b.ctx, ie)).To(Succeed())
	seen := b.sightings(ns)
	cluster := b.cluster(ns, "sno-done-aci.yaml", 1)
	agent := b.boot(b.imageOf(ie), ns+"-s0")
	b.Eventually(func() error {
		return b.client.Get(b.ctx, types.NamespacedName{Namespace: ns, Name: agent}, &Agent{})
	}).Should(Succeed())
	b.approve(ns, agent)
	b.expectCluster(cluster, models.ClusterStatusAddingHosts)
	wanted := recorded[hiveext.AgentClusterInstall](b.T, "sno-done-aci.yaml").Status
	aci := b.install(cluster)
	b.Expect(aci.Status.PlatformType).To(Equal(wanted.PlatformType))
	b.Expect(aci.Status.APIVIP).To(Equal(wanted.APIVIP))
	b.Expect(b.agent(ns, agent).Status.Bootstrap).To(BeTrue())
	b.Eventually(seen).Should(ContainElement(models.ClusterStatusAddingHosts))
	b.Expect(seen()).NotTo(ContainElement(models.ClusterStatusReady), "approved at creation: state ready is skipped")

	b.Expect(b.client.Delete(b.ctx, &hivev1.ClusterDeployment{ObjectMeta: objectMeta(cluster)})).To(Succeed())
	b.expectDeleted(&hivev1.ClusterDeployment{}, cluster)
	b.expectDeleted(&Agent{}, types.NamespacedName{Namespace: ns, Name: agent})
}

func missingInputs(b bed) {
	ns := b.namespace()
	b.Expect(b.client.Delete(b.ctx, pullSecret(ns))).To(Succeed())
	ie := b.infraEnv(ns, "ie1", nil)
	b.Eventually(func() string {
		b.Expect(b.client.Get(b.ctx, client.ObjectKeyFromObject(ie), ie)).To(Succeed())
		if len(ie.Status.Conditions) == 0 {
			return ""
		}
		return ie.Status.Conditions[0].Message
	}).Should(ContainSubstring("pull-secret"))
	cluster := b.cluster(ns, "day1-done-aci.yaml", 3)
	synced := func() string {
		for _, c := range b.install(cluster).Status.Conditions {
			if c.Type == hiveext.ClusterSpecSyncedCondition {
				return c.Reason
			}
		}
		return ""
	}
	b.Eventually(synced).Should(Equal(hiveext.ClusterInputErrorReason))
	b.create(pullSecret(ns))
	b.imageOf(ie)
	b.Eventually(synced).Should(Equal(hiveext.ClusterSyncedOkReason))
	secret := &corev1.Secret{}
	b.Expect(b.client.Get(b.ctx, types.NamespacedName{Namespace: ns, Name: "pull-secret"}, secret)).To(Succeed())
	b.Expect(secret.Labels).To(HaveKeyWithValue("agent-install.openshift.io/watch", "true"))

	b.sim.FailImage(client.ObjectKeyFromObject(ie), "no space left")
	b.Eventually(func() string {
		b.Expect(b.client.Get(b.ctx, client.ObjectKeyFromObject(ie), ie)).To(Succeed())
		return ie.Status.ISODownloadURL
	}).Should(BeEmpty())
	b.sim.FailImage(client.ObjectKeyFromObject(ie), "")
	b.imageOf(ie)
}

// waitingForApproval returns a cluster of one master and no workers with a bound, known host.
func (b bed) waitingForApproval(ns string) (cluster types.NamespacedName, agent string) {
	id := b.imageOf(b.infraEnv(ns, "ie1", nil))
	cluster = b.cluster(ns, "sno-done-aci.yaml", 1)
	agent = b.boot(id, ns+"-s0")
	b.expectAgent(ns, agent, models.HostStatusKnownUnbound)
	b.bind(ns, agent, cluster, models.HostRoleMaster)
	b.expectAgent(ns, agent, models.HostStatusKnown)
	return cluster, agent
}

func failingPreparation(b bed) {
	ns := b.namespace()
	cluster, agent := b.waitingForApproval(ns)
	seen := b.sightings(ns)
	b.sim.FailPreparation(cluster, "cannot generate manifests")
	b.approve(ns, agent)
	b.Eventually(seen).Should(ContainElement(string(hiveext.ClusterLastInstallationPreparationFailedCondition) + "=True/" +
		hiveext.ClusterLastInstallationPreparationFailedErrorReason))
	b.sim.FailPreparation(cluster, "")
	b.sim.FailHostPreparation(agent, "Failed to fetch container images")
	b.expectAgent(ns, agent, models.HostStatusPreparingFailed)
	b.sim.FailHostPreparation(agent, "")
	b.expectCluster(cluster, models.ClusterStatusAddingHosts)
}

func failingHost(b bed) {
	ns := b.namespace()
	cluster, agent := b.waitingForApproval(ns)
	b.sim.FailHost(agent, models.HostStageWritingImageToDisk, "disk is broken")
	b.approve(ns, agent)
	b.expectCluster(cluster, models.ClusterStatusError)
	b.Eventually(func() DebugInfo { return b.agent(ns, agent).Status.DebugInfo }).Should(And(
		HaveField("State", models.HostStatusError), HaveField("StateInfo", "Failed - disk is broken")))
	aci := b.install(cluster)
	aci.Spec.SSHPublicKey = "changed"
	b.Expect(b.client.Update(b.ctx, aci)).To(MatchError(ContainSubstring("immutable after install started")))
}

func agentIsRecreated(b bed) {
	ns := b.namespace()
	agent := b.boot(b.imageOf(b.infraEnv(ns, "ie1", nil)), ns+"-x0")
	b.expectAgent(ns, agent, models.HostStatusKnownUnbound)
	b.approve(ns, agent)
	first := b.agent(ns, agent)
	b.Expect(b.client.Delete(b.ctx, first)).To(Succeed())
	b.Eventually(func() types.UID { return b.agent(ns, agent).UID }).ShouldNot(BeElementOf(first.UID, types.UID("")))
	b.expectAgent(ns, agent, models.HostStatusKnownUnbound)
	b.Expect(b.agent(ns, agent).Spec.Approved).To(BeFalse())
}

func deletedClusterFreesHosts(b bed) {
	ns := b.namespace()
	cluster, installed := b.installed(ns, 3)
	b.Expect(b.client.Delete(b.ctx, &hivev1.ClusterDeployment{ObjectMeta: objectMeta(cluster)})).To(Succeed())
	b.expectDeleted(&hivev1.ClusterDeployment{}, cluster)
	for _, agent := range installed {
		b.expectAgent(ns, agent, models.HostStatusUnbindingPendingUserAction)
		b.Expect(b.agent(ns, agent).Spec.ClusterDeploymentName).To(BeNil())
		b.Expect(b.agent(ns, agent).Spec.Approved).To(BeTrue(), "approval survives")
	}
	b.expectDeleted(&corev1.Secret{}, types.NamespacedName{Namespace: ns, Name: "c1-admin-kubeconfig"})

	other := b.namespace()
	waiting, agent := b.waitingForApproval(other)
	b.Expect(b.client.Delete(b.ctx, &hivev1.ClusterDeployment{ObjectMeta: objectMeta(waiting)})).To(Succeed())
	b.expectDeleted(&hivev1.ClusterDeployment{}, waiting)
	b.expectAgent(other, agent, models.HostStatusKnownUnbound)
}

func deletedInfraEnv(b bed) {
	ns := b.namespace()
	ie := b.infraEnv(ns, "ie1", nil)
	agent := b.boot(b.imageOf(ie), ns+"-x0")
	b.expectAgent(ns, agent, models.HostStatusKnownUnbound)
	b.Expect(b.client.Delete(b.ctx, ie)).To(Succeed())
	b.expectDeleted(&InfraEnv{}, client.ObjectKeyFromObject(ie))
	b.expectDeleted(&Agent{}, types.NamespacedName{Namespace: ns, Name: agent})
}

func infraEnvIsKeptForItsHosts(b bed) {
	ns := b.namespace()
	cluster, agent := b.waitingForApproval(ns)
	ie := &InfraEnv{ObjectMeta: objectMeta(types.NamespacedName{Namespace: ns, Name: "ie1"})}
	b.Expect(b.client.Delete(b.ctx, ie)).To(Succeed())
	b.Consistently(func() error { return b.client.Get(b.ctx, client.ObjectKeyFromObject(ie), ie) }).WithTimeout(time.Second).Should(Succeed(),
		"its host is bound")
	b.approve(ns, agent)
	b.expectCluster(cluster, models.ClusterStatusAddingHosts)
	b.expectDeleted(&InfraEnv{}, client.ObjectKeyFromObject(ie))

	other := b.namespace()
	_, agent = b.waitingForApproval(other)
	ie.Namespace, ie.ResourceVersion, ie.UID = other, "", ""
	b.Expect(b.client.Delete(b.ctx, ie)).To(Succeed())
	b.expectAgent(other, agent, models.HostStatusKnown)
	b.Expect(b.client.Delete(b.ctx, b.agent(other, agent))).To(Succeed())
	b.expectDeleted(&InfraEnv{}, client.ObjectKeyFromObject(ie))
}

func deletedAgentOfAnInstalledHost(b bed) {
	ns := b.namespace()
	_, agents := b.installed(ns, 3)
	node := types.NamespacedName{Name: b.agent(ns, agents[0]).Status.Inventory.Hostname}
	b.Expect(b.client.Get(b.ctx, node, &corev1.Node{})).To(Succeed())

	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: ns, Name: "c1-admin-kubeconfig"}
	b.Expect(b.client.Get(b.ctx, key, secret)).To(Succeed())
	kubeconfig := secret.Data["kubeconfig"]
	secret.Data["kubeconfig"] = []byte("{}")
	b.Expect(b.client.Update(b.ctx, secret)).To(Succeed())
	b.Expect(b.client.Delete(b.ctx, b.agent(ns, agents[0]))).To(Succeed())
	b.Eventually(func() bool {
		return slices.ContainsFunc(agentConditionsOf(b.agent(ns, agents[0])), func(kind string) bool { return kind == "Cleanup" })
	}).Should(BeTrue(), "the workload cluster is unreachable")

	skipped := b.agent(ns, agents[1])
	other := types.NamespacedName{Name: skipped.Status.Inventory.Hostname}
	skipped.Annotations[skipSpokeCleanup] = "true"
	b.Expect(b.client.Update(b.ctx, skipped)).To(Succeed())
	b.Expect(b.client.Delete(b.ctx, skipped)).To(Succeed())
	b.expectDeleted(&Agent{}, client.ObjectKeyFromObject(skipped))
	b.Expect(b.client.Get(b.ctx, other, &corev1.Node{})).To(Succeed(), "another controller removes its Node")

	secret.Data["kubeconfig"] = kubeconfig
	b.Expect(b.client.Update(b.ctx, secret)).To(Succeed())
	b.expectDeleted(&Agent{}, types.NamespacedName{Namespace: ns, Name: agents[0]})
	b.expectDeleted(&corev1.Node{}, node)
}

func agentConditionsOf(agent *Agent) []string {
	var kinds []string
	for _, c := range agent.Status.Conditions {
		kinds = append(kinds, string(c.Type))
	}
	return kinds
}

func (b bed) expectDeleted(obj client.Object, key types.NamespacedName) {
	b.Helper()
	b.Eventually(func() bool { return apierrors.IsNotFound(b.client.Get(b.ctx, key, obj)) }).Should(BeTrue())
}
