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
	It("whose URL changes is updated until a host is chosen, and not changed afterwards", func(ctx SpecContext) {
		const namespace = "image"
		cluster := apply(ctx, "sno", lab.Mutations{Namespace: namespace, ClusterName: "moving", ExtraHosts: -1})
		first := bootImage(wait(ctx, cluster, "with its image", bootsLatestImage))

		By("changing the content of the image without a host: the token in its URL changes as well")
		patch(ctx, controlPlaneOf(cluster), `{"spec":{"openshiftAssistedConfigSpec":{"additionalNTPSources":["ntp.lab.example.com"]}}}`)
		second := bootImage(wait(ctx, cluster, "with another image",
			func(s *lab.State) bool { return bootsLatestImage(s) && bootImage(s) != first }))

		By("changing it again after a host was chosen that is off: with a booted host the image would not change")
		_, err := hosts.NewBareMetalHosts(ctx, laboratory.Client(), namespace, 1, hosts.WithName("late"))
		Expect(err).NotTo(HaveOccurred())
		var host *hosts.Host
		Eventually(ctx, func() *hosts.Host { host = laboratory.Rack.Host(namespace + "/late-0"); return host }).
			WithPolling(10 * time.Millisecond).ShouldNot(BeNil())
		host.PowerOff()
		wait(ctx, cluster, "using the host", func(s *lab.State) bool { return s.Machines[0].Host != nil })
		patch(ctx, controlPlaneOf(cluster), `{"spec":{"openshiftAssistedConfigSpec":{"additionalNTPSources":["ntp.elsewhere.example.com"]}}}`)
		wait(ctx, cluster, "with a third image that the host does not get", func(s *lab.State) bool {
			latest := s.InfraEnvs[0].Status.ISODownloadURL
			return latest != "" && latest != second
		})
		Consistently(ctx, func() string { return bootImage(state(ctx, cluster)) }).WithTimeout(quiet).Should(Equal(second))
		Expect(host.Boots()).To(BeEmpty())

		By("booting the host")
		host.PowerOn()
		waitAvailable(ctx, cluster)
		Expect(bootImage(state(ctx, cluster))).To(Equal(second))
		expectInstalled(ctx, cluster, 0)
	}, NodeTimeout(2*installTimeout))
})

// bootImage returns the URL of the image that the first Machine's host boots.
func bootImage(s *lab.State) string {
	GinkgoHelper()
	url, _, err := unstructured.NestedString(s.Machines[0].Infra.Object, "spec", "image", "url")
	Expect(err).NotTo(HaveOccurred())
	return url
}

// bootsLatestImage reports whether the first Machine's host boots the latest image of assisted-service.
func bootsLatestImage(s *lab.State) bool {
	if len(s.Machines) == 0 || s.Machines[0].Infra == nil || len(s.InfraEnvs) == 0 {
		return false
	}
	latest := s.InfraEnvs[0].Status.ISODownloadURL
	return latest != "" && bootImage(s) == latest
}
