package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("An installation", Label("hold"), func() {
	It("continues in assisted-service while its Cluster is paused, and the managers catch up afterwards",
		Label("nightly"), func(ctx SpecContext) {
			cluster := apply(ctx, "sno", lab.Mutations{Namespace: "pause", ClusterName: "sleeper", HoldAPI: true})
			wait(ctx, cluster, "installing", installing)
			Expect(cluster.Pause(ctx, true)).To(Succeed())
			s := wait(ctx, cluster, "paused", func(s *lab.State) bool {
				return lab.Condition(s.ControlPlane.Status.Conditions, "Paused").Status == "True" &&
					lab.Condition(s.Machines[0].Config.Status.Conditions, "Paused").Status == "True"
			})
			since := time.Now()
			cluster.ReleaseAPI()
			wait(ctx, cluster, "installed by assisted-service", func(s *lab.State) bool {
				return s.Installation.Status.DebugInfo.State == "adding-hosts"
			})
			Expect(state(ctx, cluster).ControlPlane.ResourceVersion).To(Equal(s.ControlPlane.ResourceVersion))
			Expect(writesIn(cluster.Namespace, since)).To(Equal(audit.Requests(nil)), "writes while the Cluster is paused")
			Expect(cluster.Pause(ctx, false)).To(Succeed())
			waitAvailable(ctx, cluster)
			expectInstalled(ctx, cluster, 0)
		}, NodeTimeout(2*installTimeout))
})
