package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("Managers", Label("restart"), Serial, func() {
	It("are killed in the middle of an installation and go on where they were, twice nothing", func(ctx SpecContext) {
		kill := func() {
			GinkgoHelper()
			expectNoPanic(ctx)
			for _, manager := range ourManagers() {
				manager.Kill()
			}
			for _, manager := range ourManagers() {
				Expect(manager.Start(ctx)).To(Succeed())
			}
		}
		cluster := apply(ctx, "ha", lab.Mutations{Namespace: "restart", ClusterName: "phoenix", HoldAPI: true})

		By("killing them when the first Machine appears")
		wait(ctx, cluster, "making Machines", func(s *lab.State) bool { return len(s.Machines) > 0 })
		kill()
		By("killing them when hosts are discovered")
		wait(ctx, cluster, "discovering hosts", func(s *lab.State) bool { return len(s.Agents) > 0 })
		kill()
		By("killing them while the hosts are written")
		wait(ctx, cluster, "installing", installing)
		kill()
		cluster.ReleaseAPI()
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)

		By("counting what there is")
		for kind, wanted := range map[string]int{
			"Machine": 5, "Metal3Machine": 5, "OpenshiftAssistedConfig": 5, "InfraEnv": 5, "Agent": 5,
			"AgentClusterInstall": 1, "ClusterDeployment": 1,
		} {
			Expect(objectsOf(ctx, kind, cluster.Namespace)).To(HaveLen(wanted), kind)
		}
	}, NodeTimeout(2*installTimeout))
})

func objectsOf(ctx SpecContext, kind, namespace string) []unstructured.Unstructured {
	GinkgoHelper()
	for _, gvk := range ourKinds {
		if gvk.Kind == kind {
			return listAll(ctx, gvk, namespace)
		}
	}
	Fail("unknown kind " + kind)
	return nil
}
