package assistedsim

import (
	"slices"

	"github.com/openshift/assisted-service/models"
	"k8s.io/apimachinery/pkg/types"
)

// Still does something to a cluster in a moment in which no host of it is being installed, and lets no installation
// start until that is done. It is not done, and false, where a host is being installed already. The cluster is named by
// its ClusterDeployment.
func (s *Simulator) Still(cluster types.NamespacedName, act func() error) (bool, error) {
	if !s.hush(cluster) {
		return false, nil
	}
	defer s.unhush(cluster)
	return true, act()
}

// hush lets nothing start in a cluster, if nothing has.
func (s *Simulator) hush(cluster types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clusters[cluster]
	if c != nil && !c.waiting() && c.state != models.ClusterStatusAddingHosts {
		return false
	}
	if slices.ContainsFunc(slices.Concat(s.members(cluster, false), s.members(cluster, true)),
		func(h *host) bool { return installing(h.state) }) {
		return false
	}
	s.still[cluster]++
	return true
}

func (s *Simulator) unhush(cluster types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.still[cluster]--; s.still[cluster] == 0 {
		delete(s.still, cluster)
		s.touchCluster(cluster)
	}
}
