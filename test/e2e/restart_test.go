package e2e

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/faultproxy"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// One cluster is installed though the managers crash, and assisted-service loses it later.
var _ = Describe("An installation", Label("restart", "lost"), Ordered, Serial, func() {
	var cluster *lab.Cluster
	BeforeAll(func(ctx SpecContext) {
		cluster = apply(ctx, "ha", lab.Mutations{
			Namespace: "restart", ClusterName: "phoenix", LightAPI: lightly(),
			HoldAPI: true, ExtraHosts: 1, Edit: oneWorker,
		})
	}, NodeTimeout(soon))

	It("continues when the managers are killed during it, without duplicates", func(ctx SpecContext) {
		By("killing them when the first Machine appears")
		wait(ctx, cluster, "making Machines", func(s *lab.State) bool { return len(s.Machines) > 0 })
		kill(ctx)
		By("killing them when hosts are discovered")
		wait(ctx, cluster, "discovering hosts", func(s *lab.State) bool { return len(s.Agents) > 0 })
		kill(ctx)
		By("killing them while the hosts are written")
		wait(ctx, cluster, "installing", installing)
		kill(ctx)
		cluster.ReleaseAPI()
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)

		By("counting the objects")
		for kind, wanted := range map[string]int{
			"Machine": 4, "Metal3Machine": 4, "OpenshiftAssistedConfig": 4, "InfraEnv": 4, "Agent": 4,
			"AgentClusterInstall": 1, "ClusterDeployment": 1,
		} {
			Expect(objectsOf(ctx, kind, cluster.Namespace)).To(HaveLen(wanted), kind)
		}
	}, NodeTimeout(2*installTimeout))

	It("that is finished, and that assisted-service registers again, is neither repeated nor gets hosts", func(ctx SpecContext) {
		onlySimulated()
		before := state(ctx, cluster).Installation.Spec
		laboratory.Service.LoseCluster(cluster.Key())
		wait(ctx, cluster, "registered again", func(s *lab.State) bool { return s.Installation.Status.DebugInfo.State == "insufficient" })
		message := waitReason(ctx, cluster, controlplanev1.RegistrationHealthyCondition, controlplanev1.ReregisteredReason)
		Expect(message).To(ContainSubstring("import"), "the advice")

		By("adding a worker: its host is discovered, and not bound to a cluster that would be installed")
		Expect(cluster.Scale(ctx, 2)).To(Succeed())
		wait(ctx, cluster, "blocking the worker", func(s *lab.State) bool { return configHas(s, bootstrapv1.ClusterReregisteredReason) })
		Consistently(ctx, func(g Gomega) {
			s, err := cluster.State(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.Installation.Spec).To(Equal(before))
			g.Expect(s.ControlPlane.Status.Installation.Phase).To(Equal(controlplanev1.InstallationInstalled))
			for _, m := range s.Machines {
				if m.Agent != nil && !m.Running() {
					g.Expect(m.Agent.Spec.ClusterDeploymentName).To(BeNil())
					g.Expect(m.Agent.Spec.Approved).To(BeFalse())
				}
			}
		}).WithTimeout(quiet).Should(Succeed())
	}, NodeTimeout(2*installTimeout))
})

var _ = Describe("Managers", Label("restart"), Serial, func() {
	It("find an unchanged state after a restart, and write nothing", Label("nightly"), func(ctx SpecContext) {
		clusters := []*lab.Cluster{apply(ctx, "ha", lab.Mutations{Namespace: "asleep", ClusterName: "sleeper"})}
		hostless := maps.Clone(everySample)
		hostless["clusterclass"] = furtherSamples["clusterclass"]
		for sample, expected := range hostless { // these wait for hosts, with all objects of an installation
			machines := expected.machines
			waiting := apply(ctx, sample, lab.Mutations{Namespace: "hostless-" + sample, ExtraHosts: -machines, Edit: setInPlace})
			wait(ctx, waiting, "making Machines", func(s *lab.State) bool { return len(s.Machines) == machines })
			clusters = append(clusters, waiting)
		}
		waitAvailable(ctx, clusters[0])
		applied.deletions.Wait()
		namespaces := []string{""} // for cluster-scoped kinds
		for _, cluster := range clusters {
			namespaces = append(namespaces, cluster.Namespace)
		}
		if laboratory.Service != nil {
			laboratory.Service.Flap(0)
			DeferCleanup(laboratory.Service.Flap, flapping)
		}
		waitSettled(ctx, namespaces[1:]...)

		begin := time.Now()
		kill(ctx)
		for _, manager := range ourManagers() {
			Eventually(func() (int, error) { return manager.Reconciles(ctx) }).Should(BeNumerically(">", len(clusters)), manager.Name)
		}
		Consistently(func() (writes audit.Requests) {
			for _, namespace := range namespaces {
				writes = append(writes, writesIn(namespace, begin).Work()...)
			}
			return writes
		}).WithTimeout(settleTime).WithPolling(time.Second).Should(BeEmpty())
	}, NodeTimeout(2*installTimeout+deleteTimeout))
})

// setInPlace sets the fields of a control plane that are propagated to its Machines.
func setInPlace(object *unstructured.Unstructured) {
	if object.GetKind() != "OpenshiftAssistedControlPlane" {
		return
	}
	template := object.Object["spec"].(map[string]any)["machineTemplate"].(map[string]any)
	template["metadata"] = map[string]any{
		"labels":      map[string]any{"example.com/shelf": "3"},
		"annotations": map[string]any{"example.com/since": ""},
	}
	spec := template["spec"].(map[string]any)
	spec["readinessGates"] = []any{
		map[string]any{"conditionType": "ExaminedByHand"},
		map[string]any{"conditionType": "OnFire", "polarity": "Negative"},
	}
	spec["deletion"] = map[string]any{"nodeDrainTimeoutSeconds": int64(60)}
}

// kill kills both managers as a crash would, and starts them again.
func kill(ctx context.Context) {
	GinkgoHelper()
	expectNoPanic(ctx)
	for _, manager := range ourManagers() {
		manager.Kill()
	}
	for _, manager := range ourManagers() {
		Expect(manager.Start(ctx)).To(Succeed())
	}
}

// crashAtWrites makes both managers crash around each of their writes to a namespace, until live is called, which
// returns the number of crashes.
func crashAtWrites(ctx context.Context, namespace string) (live func() int) {
	GinkgoHelper()
	proxies := map[*process.Process]*faultproxy.Proxy{}
	for _, manager := range ourManagers() {
		proxy, err := faultproxy.Listen(ctx, strings.TrimPrefix(manager.User, "system:serviceaccount:"), laboratory.Env.Kubeconfig())
		Expect(err).NotTo(HaveOccurred())
		path, err := proxy.Kubeconfig(laboratory.Dir())
		Expect(err).NotTo(HaveOccurred())
		proxies[manager] = proxy
		before := manager.Env
		DeferCleanup(func(ctx context.Context) {
			proxy.StopCrashes()
			manager.Kill()
			proxy.Close()
			manager.Env = before
			Expect(manager.Start(ctx)).To(Succeed())
		})
		manager.Kill()
		manager.Env = append(slices.Clone(before), "KUBECONFIG="+path)
		Expect(manager.Start(ctx)).To(Succeed())
		proxy.CrashAtWrites(manager, namespace, faultproxy.AroundWrites)
	}
	return func() (crashes int) {
		for _, proxy := range proxies {
			crashes += proxy.StopCrashes()
		}
		return crashes
	}
}

func objectsOf(ctx SpecContext, kind, namespace string) []unstructured.Unstructured {
	GinkgoHelper()
	for _, gvk := range lab.Kinds {
		if gvk.Kind == kind {
			return listAll(ctx, gvk, namespace)
		}
	}
	Fail("unknown kind " + kind)
	return nil
}
