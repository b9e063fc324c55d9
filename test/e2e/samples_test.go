package e2e

import (
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/argocd"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// machinesOf is how many machines the samples have.
var machinesOf = map[string]int{"ha": 5, "compact": 3, "sno": 1, "ha-disk-image": 5, "okd": 5, "clusterclass": 5}

// The samples are installed all at the same time, looked at, left alone, and deleted.
var _ = Describe("Samples", Ordered, Label("samples"), func() {
	clusters := map[string]*lab.Cluster{}
	var asked int

	BeforeAll(func(ctx SpecContext) {
		asked = len(laboratory.Registry.Lookups())
		samples, err := laboratory.Samples()
		Expect(err).NotTo(HaveOccurred())
		Expect(samples).To(ContainElements(slices.Collect(maps.Keys(machinesOf))))
		for _, sample := range samples {
			clusters[sample] = apply(ctx, sample, lab.Mutations{Namespace: "sample-" + sample})
		}
		for _, cluster := range clusters {
			waitAvailable(ctx, cluster)
		}
	}, NodeTimeout(2*installTimeout))

	for sample, machines := range machinesOf {
		It("install: "+sample, func(ctx SpecContext) {
			cluster := clusters[sample]
			Expect(state(ctx, cluster).Wanted).To(Equal(machines))
			expectInstalled(ctx, cluster, 0)
		}, NodeTimeout(soon))
	}

	It("ask the registry once for each release", func() {
		seen := map[string]bool{}
		for _, lookup := range laboratory.Registry.Lookups()[asked:] {
			Expect(seen).NotTo(HaveKey(lookup), "asked again")
			seen[lookup] = true
		}
		Expect(len(seen)).To(BeNumerically("<=", 2), "one OpenShift and one OKD release in six clusters")
	})

	It("are in progress to Argo CD until they are installed, and never degraded", func() {
		for _, cluster := range clusters {
			for _, kind := range []string{"Cluster", "OpenshiftAssistedControlPlane", "AgentClusterInstall"} {
				Expect(health.ofObject(kind, cluster.Key())).To(Equal([]string{argocd.Progressing, argocd.Healthy}), "%s %s", kind, cluster.Key())
			}
		}
	})

	It("do not differ from what Argo CD would apply again", func(ctx SpecContext) {
		for _, cluster := range clusters {
			Expect(cluster.Drift(ctx, "argocd-controller")).To(BeEmpty(), "of %s", cluster.Key())
		}
	}, NodeTimeout(soon))

	It("need nothing, once installed, while nothing happens", Label("idle"), func(ctx SpecContext) {
		expectIdle(ctx, slices.Collect(maps.Values(clusters))...)
	}, NodeTimeout(4*soon))

	It("leave nothing behind when they are deleted", func(ctx SpecContext) {
		expectDeleted(ctx, clusters["ha"], clusters["sno"], clusters["ha-disk-image"], clusters["okd"], clusters["clusterclass"])
		expectNotTouched(ctx, clusters["compact"])
	}, NodeTimeout(deleteTimeout+soon))
})

// classVariables are those of the ClusterClass that a Cluster may leave out.
var classVariables = map[string]any{
	"releaseImage": "quay.io/example/release@sha256:" + strings.Repeat("a", 64), "imageRegistry": "mirrors",
	"proxy": map[string]any{"httpProxy": "http://proxy.example.com:3128", "noProxy": ".example.com"}, "sshAuthorizedKey": "ssh-ed25519 AAAA",
	"additionalNTPSources": []any{"ntp.example.com"}, "additionalTrustBundle": "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n",
	"networkType": "Cilium", "installConfigOverride": `{"fips":true}`,
}

var _ = Describe("The ClusterClass", Label("samples"), func() {
	It("passes on what a Cluster says to the control plane and its workers", func(ctx SpecContext) {
		onlySimulated()
		cluster := apply(ctx, "clusterclass", lab.Mutations{Namespace: "class-variables", ClusterName: "said", ExtraHosts: -5, Edit: func(object *unstructured.Unstructured) {
			if object.GetKind() != "Cluster" {
				return
			}
			variables, _, err := unstructured.NestedSlice(object.Object, "spec", "topology", "variables")
			Expect(err).NotTo(HaveOccurred())
			for name, value := range classVariables {
				variables = append(variables, map[string]any{"name": name, "value": value})
			}
			Expect(unstructured.SetNestedSlice(object.Object, variables, "spec", "topology", "variables")).To(Succeed())
		}})
		controlPlane, template := controlPlaneOf(cluster), bootstrapv1.OpenshiftAssistedConfigTemplateList{}
		Eventually(ctx, func() error {
			return laboratory.Client().Get(ctx, client.ObjectKeyFromObject(controlPlane), controlPlane)
		}).Should(Succeed())
		Eventually(ctx, func() ([]bootstrapv1.OpenshiftAssistedConfigTemplate, error) {
			err := laboratory.Client().List(ctx, &template, client.InNamespace(cluster.Namespace), client.HasLabels{clusterv1.ClusterTopologyOwnedLabel})
			return template.Items, err
		}).Should(HaveLen(1), "that of the workers")
		spec := &controlPlane.Spec
		for _, proxy := range []*bootstrapv1.Proxy{spec.Config.Proxy, spec.OpenshiftAssistedConfigSpec.Proxy, template.Items[0].Spec.Template.Spec.Proxy} {
			Expect(proxy).To(HaveValue(Equal(bootstrapv1.Proxy{HTTPProxy: "http://proxy.example.com:3128", NoProxy: ".example.com"})))
		}
		for _, config := range []bootstrapv1.OpenshiftAssistedConfigSpec{spec.OpenshiftAssistedConfigSpec, template.Items[0].Spec.Template.Spec} {
			Expect(config.SSHAuthorizedKey).To(Equal(classVariables["sshAuthorizedKey"]))
			Expect(config.AdditionalNTPSources).To(ConsistOf("ntp.example.com"))
			Expect(config.AdditionalTrustBundle).To(Equal(classVariables["additionalTrustBundle"]))
			Expect(config.BootMode).To(Equal(bootstrapv1.BootModeLiveISO))
		}
		Expect(spec.Config.SSHAuthorizedKey).To(Equal(classVariables["sshAuthorizedKey"]))
		Expect(spec.Config.ReleaseImage).To(Equal(classVariables["releaseImage"]))
		Expect(spec.Config.ImageRegistryRef).To(HaveValue(HaveField("Name", "mirrors")))
		Expect(spec.Config.NetworkType).To(Equal("Cilium"))
		Expect(spec.Config.InstallConfigOverride).To(Equal(`{"fips":true}`))
		expectDeleted(ctx, cluster)
	}, NodeTimeout(deleteTimeout+soon))
})
