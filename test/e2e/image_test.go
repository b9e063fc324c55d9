package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("A discovery image", Label("image", "nightly"), func() {
	It("whose URL changes is followed until a host is chosen, and left alone afterwards", func(ctx SpecContext) {
		const namespace = "image"
		cluster := apply(ctx, "sno", lab.Mutations{Namespace: namespace, ClusterName: "moving", ExtraHosts: -1})
		first := given(wait(ctx, cluster, "given its image", givenLatest))

		By("changing what is in the image while there is no host: the token in its URL changes with it")
		patch(ctx, controlPlaneOf(cluster), `{"spec":{"openshiftAssistedConfigSpec":{"additionalNTPSources":["ntp.lab.example.com"]}}}`)
		second := given(wait(ctx, cluster, "given another image", func(s *lab.State) bool { return givenLatest(s) && given(s) != first }))

		By("changing it once more after a host was chosen, which cannot boot: the image would be frozen otherwise")
		_, err := hosts.NewBareMetalHosts(ctx, laboratory.Client(), namespace, 1, hosts.WithName("late"))
		Expect(err).NotTo(HaveOccurred())
		var host *hosts.Host
		Eventually(ctx, func() *hosts.Host { host = laboratory.Rack.Host(namespace + "/late-0"); return host }).
			WithPolling(10 * time.Millisecond).ShouldNot(BeNil())
		host.PowerOff()
		wait(ctx, cluster, "using the host", func(s *lab.State) bool { return s.Machines[0].Host != nil })
		patch(ctx, controlPlaneOf(cluster), `{"spec":{"openshiftAssistedConfigSpec":{"additionalNTPSources":["ntp.elsewhere.example.com"]}}}`)
		wait(ctx, cluster, "given a third image that its host is not told of", func(s *lab.State) bool {
			latest := s.InfraEnvs[0].Status.ISODownloadURL
			return latest != "" && latest != second
		})
		Consistently(ctx, func() string { return given(state(ctx, cluster)) }).WithTimeout(quiet).Should(Equal(second))
		Expect(host.Boots()).To(BeEmpty())

		By("booting the host")
		host.PowerOn()
		waitAvailable(ctx, cluster)
		Expect(given(state(ctx, cluster))).To(Equal(second))
		expectInstalled(ctx, cluster, 0)
	}, NodeTimeout(2*installTimeout))
})

// given is the URL of the image that the first Machine's host is to boot.
func given(s *lab.State) string {
	GinkgoHelper()
	url, _, err := unstructured.NestedString(s.Machines[0].Infra.Object, "spec", "image", "url")
	Expect(err).NotTo(HaveOccurred())
	return url
}

// givenLatest reports whether the first Machine's host is to boot the image that assisted-service has for it now.
func givenLatest(s *lab.State) bool {
	if len(s.Machines) == 0 || s.Machines[0].Infra == nil || len(s.InfraEnvs) == 0 {
		return false
	}
	latest := s.InfraEnvs[0].Status.ISODownloadURL
	return latest != "" && given(s) == latest
}
