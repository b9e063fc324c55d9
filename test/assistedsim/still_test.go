package assistedsim

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	"k8s.io/apimachinery/pkg/types"
)

func TestStillBlocksStarts(t *testing.T) {
	key := types.NamespacedName{Name: "c"}
	for name, world := range map[string]struct {
		cluster, kind, starts string
	}{
		"the installation": {models.ClusterStatusReady, models.HostKindHost, models.ClusterStatusPreparingForInstallation},
		"a day-2 host":     {models.ClusterStatusAddingHosts, models.HostKindAddToExistingClusterHost, models.HostStatusInstalling},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newSimulator(t, Options{})
			c := &cluster{
				key: key, state: world.cluster,
				spec: hiveext.AgentClusterInstallSpec{ProvisionRequirements: hiveext.ProvisionRequirements{ControlPlaneAgents: 1}},
			}
			h := &host{cluster: key, kind: world.kind, state: models.HostStatusKnown, role: models.HostRoleMaster, approved: true}
			s.clusters[key], s.hosts[types.NamespacedName{Name: "h"}] = c, h
			starts := func() string {
				if h.dayTwo() {
					state, _, _ := s.nextHostState(h)
					return state
				}
				if next := s.nextClusterState(c); next != nil {
					return next.state
				}
				return ""
			}
			g.Expect(starts()).To(Equal(world.starts))
			done, err := s.Still(key, func() error {
				g.Expect(starts()).NotTo(Equal(world.starts))
				again, err := s.Still(key, func() error { return nil })
				g.Expect(again).To(BeTrue())
				g.Expect(starts()).NotTo(Equal(world.starts), "another caller still blocks starts")
				return err
			})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(done).To(BeTrue())
			g.Expect(starts()).To(Equal(world.starts))

			h.state = models.HostStatusInstalling
			done, _ = s.Still(key, func() error { t.Error("done while a host was being installed"); return nil })
			g.Expect(done).To(BeFalse())
			h.state, c.state = models.HostStatusKnown, models.ClusterStatusPreparingForInstallation
			done, _ = s.Still(key, func() error { t.Error("done while the cluster was being installed"); return nil })
			g.Expect(done).To(BeFalse())
		})
	}
}
