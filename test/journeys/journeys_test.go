// Package journeys takes hosts and clusters through the simulated and the real assisted-service, like our providers do.
// Both must look the same to an observer of their API. If the two differ, the simulator is wrong.
package journeys

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/assistedsim"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

func TestJourneys(t *testing.T) {
	for _, backend := range []lab.Backend{lab.Simulated, lab.Real} {
		t.Run(string(backend), func(t *testing.T) {
			if backend == lab.Real && testing.Short() {
				t.Skip("starts assisted-service")
			}
			t.Run("with tokens", func(t *testing.T) {
				w := newWorld(t, backend, assistedsim.AuthLocal)
				masters, worker := w.threeControlPlanesThenAWorker()
				w.wrongBoots(masters[0], worker)
			})
			t.Run("without authentication", func(t *testing.T) {
				w := newWorld(t, backend, assistedsim.AuthNone)
				w.importedThenAWorker()
				w.singleNode()
				w.failedInstallation()
				w.deletedWhileInstalling()
				w.infraEnvOfABoundHost()
			})
		})
	}
}

func (w *world) threeControlPlanesThenAWorker() (masters []*hosts.Host, worker *hosts.Host) {
	iso := w.infraEnv("ha")
	ha := w.cluster("ha", 3)
	w.expectCluster(ha, models.ClusterStatusInsufficient)
	masters = w.threeControlPlanes(iso, ha)
	w.expectInstalled(ha)
	w.expectSeen(ha.Name, "cluster-with-a-wrong-boot.txt")
	w.expectPercentages(ha, 0, 80, 100)
	if w.Service != nil { // the real service reports states of less than a second only if its check happens at that time
		w.expectPercentages(ha, 10, 95)
	}
	w.expectSeen(masters[0].Hardware().UUID, "control-plane.txt")
	w.expectSeen(masters[1].Hardware().UUID, "control-plane.txt")
	w.expectSeen(masters[2].Hardware().UUID, "control-plane-with-a-wrong-boot.txt")

	worker = w.boot(iso, "worker-0")
	w.bind(worker, ha, models.HostRoleWorker)
	w.expectHost(worker, models.HostStatusKnown)
	w.approve(worker)
	w.expectHost(worker, models.HostStatusAddedToExistingCluster)
	if w.Service != nil { // the real service that is built is older than this field
		w.Expect(w.agent(worker).Status.Kind).To(Equal(models.HostKindAddToExistingClusterHost))
	}
	w.expectNode(ha, worker)
	w.Expect(worker.Problem()).NotTo(HaveOccurred())
	w.expectSeen(worker.Hardware().UUID, "worker-of-day-two.txt")
	return masters, worker
}

// threeControlPlanes installs a cluster. One of the hosts boots the discovery system once more, instead of its disk.
func (w *world) threeControlPlanes(iso string, cluster *lab.Cluster) (masters []*hosts.Host) {
	w.Helper()
	for i := range 3 {
		masters = append(masters, w.boot(iso, fmt.Sprintf("master-%d", i)))
	}
	masters[2].WrongBoot()
	for _, host := range masters {
		w.bind(host, cluster, models.HostRoleMaster)
	}
	for _, host := range masters {
		w.expectHost(host, models.HostStatusKnown)
	}
	w.expectCluster(cluster, models.ClusterStatusReady)
	for _, host := range masters {
		w.approve(host)
	}
	w.expectHost(masters[2], models.HostStatusInstallingPendingUserAction)
	w.expectCluster(cluster, models.ClusterStatusInstallingPendingUserAction)
	masters[2].Reboot()
	w.expectCluster(cluster, models.ClusterStatusAddingHosts)
	bootstraps := 0
	for _, host := range masters {
		w.expectHost(host, models.HostStatusInstalled)
		w.expectNode(cluster, host)
		if w.agent(host).Status.Bootstrap {
			bootstraps++
		}
	}
	w.Expect(bootstraps).To(Equal(1))
	return masters
}

// importedThenAWorker lets a host join a cluster that the service did not install. Its installation stops at the
// reboot, because no server has the API of that cluster.
func (w *world) importedThenAWorker() {
	iso := w.infraEnv("imported")
	imported := w.importedCluster("imported")
	synced := func() corev1.ConditionStatus {
		for _, c := range w.install(imported).Status.Conditions {
			if c.Type == hiveext.ClusterSpecSyncedCondition {
				return c.Status
			}
		}
		return ""
	}
	w.Eventually(synced).Should(Equal(corev1.ConditionFalse), "its pull secret is missing")
	w.Expect(w.install(imported).Status.DebugInfo.State).To(BeEmpty())
	w.create(&corev1.Secret{
		ObjectMeta: metadata("imported-pull-secret"), Type: corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: lab.PullSecretContent()},
	})
	w.expectCluster(imported, models.ClusterStatusAddingHosts)
	w.Eventually(synced).Should(Equal(corev1.ConditionTrue))
	install := w.install(imported)
	w.Expect(assisted.Observe(install)).To(And(HaveField("DayTwo", true), HaveField("AcceptsHosts", true)))
	w.Expect(install.Spec.ClusterMetadata.InfraID).To(Equal("imported-x7k2p"), "the service leaves it as it is")

	worker := w.boot(iso, "imported-0")
	w.bind(worker, imported, models.HostRoleWorker)
	w.expectHost(worker, models.HostStatusKnown)
	w.approve(worker)
	w.expectHost(worker, models.HostStatusInstallingInProgress)
}

// wrongBoots lets hosts boot the discovery system after they were installed. The service rejects the host of the first
// day. The host of the second day waits for the user, and the service does not notice its return.
func (w *world) wrongBoots(master, worker *hosts.Host) {
	for _, host := range []*hosts.Host{master, worker} {
		host.WrongBoot()
	}
	w.Eventually(master.Problem).Should(MatchError(ContainSubstring("after the cluster has already been installed")))
	// The service announces a registration before it commits it: the Agent may show the old state until something else happens.
	w.Eventually(func() string {
		agent := w.agent(worker)
		patch := client.MergeFrom(agent.DeepCopy())
		agent.Annotations = map[string]string{"laboratory/look-again": time.Now().String()}
		w.Expect(w.Client().Patch(w.ctx, agent, patch)).To(Succeed())
		return agent.Status.DebugInfo.State
	}).WithPolling(time.Second).Should(Equal(models.HostStatusInstallingPendingUserAction))
	w.expectHost(master, models.HostStatusInstalled)
	worker.Reboot()
	master.Reboot()
	w.Eventually(func() error { return errors.Join(worker.Problem(), master.Problem()) }).ShouldNot(HaveOccurred())
	w.Consistently(func() string { return w.agent(worker).Status.DebugInfo.State }).WithTimeout(5 * time.Second).
		Should(Equal(models.HostStatusInstallingPendingUserAction))
}

// singleNode installs at the second attempt, and over a restart of the service.
func (w *world) singleNode() {
	iso := w.infraEnv("sno")
	sno := w.cluster("sno", 1)
	host := w.boot(iso, "sno-0")
	host.FailImages("connection refused")
	w.bind(host, sno, models.HostRoleMaster)
	w.approve(host)
	w.expectHost(host, models.HostStatusPreparingFailed)
	host.FailImages("")
	w.expectHost(host, models.HostStatusInstallingInProgress)
	if w.Assisted != nil {
		w.Assisted.Process().Kill()
		w.Expect(w.Assisted.Process().Start(w.ctx)).To(Succeed())
	}
	w.expectCluster(sno, models.ClusterStatusAddingHosts)
	w.expectNode(sno, host)
}

func (w *world) failedInstallation() {
	iso := w.infraEnv("bad")
	bad := w.cluster("bad", 1)
	host := w.boot(iso, "bad-0")
	host.Fail(models.HostStageWritingImageToDisk, "disk sda is read-only")
	w.bind(host, bad, models.HostRoleMaster)
	w.approve(host)
	w.expectCluster(bad, models.ClusterStatusError)
	w.expectHost(host, models.HostStatusError)
	w.Expect(w.agent(host).Status.DebugInfo.StateInfo).To(Equal("Failed - disk sda is read-only"))
	w.deleteCluster(bad, host)
}

func (w *world) deletedWhileInstalling() {
	iso := w.infraEnv("short")
	short := w.clusterWithoutAPI("short", 3)
	var all []*hosts.Host
	for i := range 3 {
		all = append(all, w.boot(iso, fmt.Sprintf("short-%d", i)))
	}
	for _, host := range all {
		w.bind(host, short, models.HostRoleMaster)
		w.approve(host)
	}
	w.Eventually(func() []models.HostStage {
		return []models.HostStage{all[0].Stage(), all[1].Stage(), all[2].Stage()}
	}).Should(ContainElement(models.HostStageWaitingForControlPlane))
	w.deleteCluster(short, all...)
}

// infraEnvOfABoundHost deletes an InfraEnv whose host belongs to a cluster and is not installed. The deletion is
// rejected until the Agent is deleted.
func (w *world) infraEnvOfABoundHost() {
	iso := w.infraEnv("kept")
	kept := w.cluster("kept", 1)
	host := w.boot(iso, "kept-0")
	w.bind(host, kept, models.HostRoleMaster)
	w.expectHost(host, models.HostStatusKnown)
	infraEnv := &aiv1beta1.InfraEnv{ObjectMeta: metadata("kept")}
	w.Expect(w.Client().Delete(w.ctx, infraEnv)).To(Succeed())
	w.Consistently(func() []string {
		w.Expect(w.Client().Get(w.ctx, client.ObjectKeyFromObject(infraEnv), infraEnv)).To(Succeed())
		return infraEnv.Finalizers
	}).WithTimeout(3 * time.Second).Should(ConsistOf("infraenv.agent-install.openshift.io/ai-deprovision"))
	w.expectHost(host, models.HostStatusKnown)
	agent := w.agent(host)
	patch := client.MergeFrom(agent.DeepCopy())
	// older versions look for a Node of each host that is bound, in a cluster that does not answer
	agent.Annotations["agent.agent-install.openshift.io/skip-spoke-cleanup"] = "true"
	w.Expect(w.Client().Patch(w.ctx, agent, patch)).To(Succeed())
	w.Expect(w.Client().Delete(w.ctx, agent)).To(Succeed())
	w.Eventually(func() error {
		return w.Client().Get(w.ctx, client.ObjectKeyFromObject(infraEnv),
			infraEnv)
	}).Should(MatchError(apierrors.IsNotFound, "gone"))
}

// deleteCluster deletes a cluster and expects those of its hosts back that run the discovery system; the others cannot hear.
func (w *world) deleteCluster(cluster *lab.Cluster, members ...*hosts.Host) {
	w.Helper()
	w.Expect(w.Client().Delete(w.ctx, &hivev1.ClusterDeployment{ObjectMeta: metadata(cluster.Name)})).To(Succeed())
	for _, host := range members {
		w.Eventually(func(g Gomega) {
			boots, wanted := host.Boots(), models.HostStatusKnownUnbound
			if boots[len(boots)-1].System == hosts.Installed {
				wanted = models.HostStatusUnbindingPendingUserAction
			}
			g.Expect(w.agent(host).Status.DebugInfo.State).To(Equal(wanted), host.Name())
		}).Should(Succeed())
	}
}
