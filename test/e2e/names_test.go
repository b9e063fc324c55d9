package e2e

import (
	"path"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// firstDisk is a hint for the disk that assisted-service does not select without one: it prefers rotating disks.
var firstDisk = metal3api.RootDeviceHints{DeviceName: "/dev/sda"}

var _ = Describe("Clusters", Label("names", "nightly"), func() {
	It("may have equal names in two namespaces, and share a namespace", func(ctx SpecContext) {
		clusters := []*lab.Cluster{
			apply(ctx, "sno", lab.Mutations{Namespace: "east", ClusterName: "twin"}),
			apply(ctx, "sno", lab.Mutations{Namespace: "west", ClusterName: "twin"}),
			apply(ctx, "compact", lab.Mutations{
				Namespace: "west", ClusterName: "other", HostOptions: []hosts.HostOption{hosts.WithRootDeviceHints(firstDisk)},
			}),
		}
		waitAvailable(ctx, clusters...)
		imageSets := map[string]bool{}
		for _, cluster := range clusters {
			expectInstalled(ctx, cluster, 0)
			imageSets[state(ctx, cluster).Installation.Spec.ImageSetRef.Name] = true
		}
		Expect(imageSets).To(HaveLen(3), "one ClusterImageSet for each cluster")
		for _, m := range state(ctx, clusters[2]).Machines {
			// CAPM3 selects any host of the namespace: only some of them have the hint for their first disk.
			disks := laboratory.Rack.Host(path.Join(m.Host.Namespace, m.Host.Name)).Hardware().Disks
			disk := disks[1]
			if m.Host.Spec.RootDeviceHints != nil {
				disk = disks[0]
				Expect(m.Agent.Spec.InstallationDiskID).To(Equal(disk.ByID))
			}
			Expect(m.Agent.Status.InstallationDiskID).To(Equal(disk.ByID))
		}

		By("deleting one of them")
		expectDeleted(ctx, clusters[0])
		for _, cluster := range clusters[1:] {
			expectUnchanged(ctx, cluster)
		}
	}, NodeTimeout(2*installTimeout))
})
