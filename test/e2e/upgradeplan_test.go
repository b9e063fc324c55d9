package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/docs"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// The releases begin with an odd minor version. Paused workers could not follow them: the cluster would refuse the second.
var _ = Describe("A topology whose versions the provider plans", Label("upgrade", "nightly"), func() {
	const first, second, third, last, channel = "4.19.10", "4.20.8", "4.21.3", "4.22.7", "stable-4.22"

	It("is upgraded over three minor versions with one change, without a paused pool", func(ctx SpecContext) {
		onlySimulated()
		const name = "planned"
		_, err := laboratory.Registry.Publish(first)
		Expect(err).NotTo(HaveOccurred())
		cluster := apply(ctx, "clusterclass", lab.Mutations{
			Namespace: name, ClusterName: name, Edit: edits(chained(first, second, third, last), planned), Divert: lab.Forward,
		})
		registerExtension(ctx, name)
		waitAvailable(ctx, cluster)
		for _, release := range []string{second, third, last} {
			publish(cluster, release, channel)
		}
		Expect(cluster.Versions().SetChannel(ctx, channel)).To(Succeed())
		before := state(ctx, cluster)
		boots := bootCounts(before)

		By("reporting a release that is missing between")
		changeTopologyOf(ctx, cluster, func(topology *clusterv1.Topology) {
			topology.Version = kubernetesOf(last)
			Expect(lab.SetTopologyVariable(topology, "releases", releasesOf(first, second, last))).To(Succeed())
		})
		Eventually(ctx, func() metav1.Condition {
			return lab.Condition(state(ctx, cluster).Cluster.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
		}).WithTimeout(soon).Should(And(HaveField("Status", metav1.ConditionFalse),
			HaveField("Message", ContainSubstring("variable releases of Cluster planned/planned has no release with Kubernetes 1.34"))))

		By("upgrading control plane and workers with each version")
		changeTopologyOf(ctx, cluster, func(topology *clusterv1.Topology) {
			Expect(lab.SetTopologyVariable(topology, "releases", releasesOf(first, second, third, last))).To(Succeed())
		})
		expectUpgraded(ctx, cluster, last)
		expectReconciled(ctx, cluster, last)
		expectUnwiped(ctx, cluster, before)
		version, err := cluster.Versions().ClusterVersion(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(version.Status.History).To(HaveExactElements(HaveField("Version", last), HaveField("Version", third),
			HaveField("Version", second), HaveField("Version", first)))
		expectBoots(ctx, cluster, boots, 3, 3)
	}, NodeTimeout(3*installTimeout))
})

// planned lets the class of chained name the handler that docs/operations/upgrading.md describes, instead of versions.
func planned(object *unstructured.Unstructured) {
	GinkgoHelper()
	if object.GetKind() != "ClusterClass" {
		return
	}
	documents, err := docs.Read("../..")
	Expect(err).NotTo(HaveOccurred())
	var snippets []map[string]any
	for _, document := range documents {
		for _, block := range document.Blocks("yaml") {
			if strings.Contains(block.Text, "generateUpgradePlanExtension:") {
				snippet := map[string]any{}
				Expect(yaml.UnmarshalStrict([]byte(block.Text), &snippet)).To(Succeed())
				snippets = append(snippets, snippet)
			}
		}
	}
	Expect(snippets).To(HaveLen(1))
	spec := object.Object["spec"].(map[string]any)
	delete(spec, "kubernetesVersions")
	for field, value := range snippets[0]["spec"].(map[string]any) {
		Expect(spec).NotTo(HaveKey(field))
		spec[field] = value
	}
}

// releasesOf returns releases by their versions of Kubernetes.
func releasesOf(releases ...string) map[string]any {
	ofVersions := map[string]any{}
	for _, release := range releases {
		ofVersions[kubernetesOf(release)] = release
	}
	return ofVersions
}
