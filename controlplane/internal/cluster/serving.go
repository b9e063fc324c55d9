package cluster

import (
	"crypto/tls"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// servingMemory is how long an authority counts as in use after a connection was accepted by it. A connection reaches
// one of several API servers: while certificates are rolled out, others still present the former one. A rollout takes
// less than an hour.
const servingMemory = 6 * time.Hour

// serving records by which authorities the certificates of the API servers of a cluster were accepted. It outlives the
// kubeconfig. Only authorities of kubeconfigs that were in use within servingMemory are recorded, which bounds it.
type serving struct {
	now func() time.Time
	// began is when the memory began.
	began time.Time

	mu sync.Mutex
	// roots are when a connection was last accepted by an authority, by fingerprint.
	roots map[string]time.Time
}

func newServing(now func() time.Time) *serving {
	return &serving{now: now, began: now(), roots: map[string]time.Time{}}
}

// record is called for each connection, also for one that goes on with an earlier session. It refuses none.
func (s *serving) record(state tls.ConnectionState) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	for _, chain := range state.VerifiedChains {
		s.roots[fingerprint(chain[len(chain)-1])] = s.now()
	}
	return nil
}

// fingerprints are those of the authorities in use; empty when the kubeconfig asks for no verification.
func (s *serving) fingerprints() sets.Set[string] {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	return sets.KeySet(s.roots)
}

// forget drops the authorities that are not in use any more; the caller holds the lock.
func (s *serving) forget() {
	maps.DeleteFunc(s.roots, func(_ string, last time.Time) bool { return s.now().Sub(last) > servingMemory })
}
