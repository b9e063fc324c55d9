package cluster

import (
	"crypto/tls"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
)

// serving records by which authorities the certificate of an API server was accepted.
type serving struct {
	mu    sync.Mutex
	roots sets.Set[string]
}

// record is called for each connection, also for one that goes on with an earlier session. It refuses none.
func (s *serving) record(state tls.ConnectionState) error {
	roots := sets.New[string]()
	for _, chain := range state.VerifiedChains {
		roots.Insert(fingerprint(chain[len(chain)-1]))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roots = roots
	return nil
}

// fingerprints are those of the authorities; empty when the kubeconfig asks for no verification.
func (s *serving) fingerprints() sets.Set[string] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roots.Clone()
}
