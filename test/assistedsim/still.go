package assistedsim

import (
	"slices"

	"github.com/openshift/assisted-service/models"
	"k8s.io/apimachinery/pkg/types"
)

// Still calls act for a cluster while no host of the cluster is being installed, and blocks the start of
// installations meanwhile. If a host is being installed already, it returns false without a call. The cluster
// is named by its ClusterDeployment.
func (s *Simulator) Still(cluster types.NamespacedName, act func() error) (bool, error) {
	if !s.blockStart(cluster) {
		return false, nil
	}
	defer s.unblockStart(cluster)
	return true, act()
}

// blockStart blocks the start of installations in a cluster. It returns false if one has started.
func (s *Simulator) blockStart(cluster types.NamespacedName) bool {
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
	s.startsBlocked[cluster]++
	return true
}

func (s *Simulator) unblockStart(cluster types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.startsBlocked[cluster]--; s.startsBlocked[cluster] == 0 {
		delete(s.startsBlocked, cluster)
		s.touchCluster(cluster)
	}
}
