package e2e

import (
	"path"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/siteconfig"
)

var _ = Describe("ClusterInstances", Label("siteconfig", "nightly"), func() {
	It("are rendered into clusters that are installed with their settings", func(ctx SpecContext) {
		onlySimulated() // one has a static address, and the real service is built without nmstate
		ha, sno := applyInstance(ctx, "ha"), applyInstance(ctx, "sno")
		waitAvailable(ctx, ha, sno)
		expectInstalled(ctx, ha, 0)
		expectInstalled(ctx, sno, 0)

		By("checking role, name and settings of each host")
		for _, m := range state(ctx, ha).Machines {
			Expect(m.IsControlPlane()).To(Equal(map[string]bool{"site-1": true, "site-2": true, "site-3": true}[m.Host.Name]), m.Host.Name)
		}
		worker := &corev1.Node{}
		Expect(workloadOf(ha).Get(ctx, types.NamespacedName{Name: "site-4"}, worker)).To(Succeed())
		Expect(worker.Labels).To(HaveKeyWithValue("example.com/accelerator", "true"))
		instruction, given := laboratory.Rack.Host(path.Join(ha.Namespace, "site-4")).Instruction()
		Expect(given).To(BeTrue())
		Expect(instruction.InstallerArgs).To(ContainSubstring("--copy-network"))
		ignition, err := hosts.DecodeIgnition([]byte(instruction.IgnitionOverrides))
		Expect(err).NotTo(HaveOccurred())
		Expect(ignition.Files).To(HaveKey("/etc/installed-at"))
		for _, infraEnv := range state(ctx, ha).InfraEnvs {
			Expect(infraEnv.Spec.IgnitionConfigOverride).To(ContainSubstring("/etc/discovered-at"))
			Expect(infraEnv.Spec.AdditionalNTPSources).To(ConsistOf("ntp.lab.example.com"))
		}
		Expect(state(ctx, sno).InfraEnvs[0].Status.InfraEnvDebugInfo.StaticNetworkDownloadURL).NotTo(BeEmpty())
		Expect(state(ctx, sno).Installation.Annotations).To(HaveKeyWithValue("agent-install.openshift.io/install-config-overrides",
			ContainSubstring(`"cpuPartitioningMode":"AllNodes"`)))

		By("checking that the operator finds the ClusterDeployment, which reports the progress of the installation")
		deployment := &hivev1.ClusterDeployment{}
		Expect(laboratory.Client().Get(ctx, ha.Key(), deployment)).To(Succeed())
		for _, labels := range []map[string]string{deployment.Labels, state(ctx, ha).Installation.Labels} {
			Expect(labels).To(And(HaveKeyWithValue(siteconfig.OwnedByLabel, "site_site"), HaveKeyWithValue("example.com/region", "north")))
		}

		By("deleting their Clusters first, in the order of the waves")
		expectDeleted(ctx, ha, sno)
	}, NodeTimeout(2*installTimeout+deleteTimeout))
})

// applyInstance applies the rendered manifests of a sample of a ClusterInstance; its cluster is deleted like
// those of [apply].
func applyInstance(ctx SpecContext, sample string) *lab.Cluster {
	GinkgoHelper()
	cluster, err := laboratory.ApplyClusterInstance(ctx, sample, "4.19.10")
	Expect(err).NotTo(HaveOccurred())
	adopt(cluster)
	return cluster
}
