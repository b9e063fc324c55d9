package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("A registered cluster", Label("hold", "service"), func() {
	It("is registered again for a setting that assisted-service would keep, with its bound hosts, and installed", func(ctx SpecContext) {
		proxied := edit(controlPlaneKind, map[string]any{"httpProxy": "http://proxy.invalid:3128"}, "spec", "config", "proxy")
		held := edit(controlPlaneKind, true, "spec", "config", "holdInstallation")
		cluster := apply(ctx, "compact", lab.Mutations{Namespace: "again", ClusterName: "again", LightAPI: lightly(), Edit: edits(proxied, held)})
		s := wait(ctx, cluster, "ready and on hold", func(s *lab.State) bool {
			return s.Installation != nil && s.Installation.Status.DebugInfo.State == "ready"
		})
		before := s.Installation
		Expect(before.Spec.Proxy).NotTo(BeNil())
		patch(ctx, s.ControlPlane, `{"spec":{"config":{"proxy":null}}}`)
		s = wait(ctx, cluster, "registered again", func(s *lab.State) bool {
			return s.Installation != nil && s.Installation.UID != before.UID && s.Installation.Status.DebugInfo.State == "ready"
		})
		Expect(s.Installation.Spec.Proxy).To(BeNil())
		patch(ctx, s.ControlPlane, `{"spec":{"config":{"holdInstallation":null}}}`)
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)
	}, NodeTimeout(2*installTimeout))
})
