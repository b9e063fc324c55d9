package e2e

import (
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

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

	It("need nothing, once installed, while nothing happens", Label("idle"), func(ctx SpecContext) {
		expectIdle(ctx, slices.Collect(maps.Values(clusters))...)
	}, NodeTimeout(4*soon))

	It("leave nothing behind when they are deleted", func(ctx SpecContext) {
		expectDeleted(ctx, clusters["ha"], clusters["sno"], clusters["ha-disk-image"], clusters["okd"], clusters["clusterclass"])
		expectNotTouched(ctx, clusters["compact"])
	}, NodeTimeout(deleteTimeout+soon))
})
