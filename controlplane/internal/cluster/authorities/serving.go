package authorities

import (
	"crypto/tls"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
)

const (
	// WithdrawalChecks is the number of connections, WithdrawalInterval apart, before a withdrawn authority is
	// removed. A connection reaches one of several API servers. During the rollout of a certificate, which takes
	// less than an hour, the others still present the former one.
	WithdrawalChecks = 7
	// WithdrawalInterval is the shortest time between two connections that count.
	WithdrawalInterval = time.Hour
	// servingMemory is how long an authority counts as in use after it accepted a connection. It covers all
	// connections of WithdrawalChecks.
	servingMemory = WithdrawalChecks * WithdrawalInterval
)

// Serving records the authorities that accepted certificates of the API servers of a cluster. It outlives the
// kubeconfig. Its size is limited to the authorities of kubeconfigs in use within servingMemory.
type Serving struct {
	clock clock.PassiveClock
	// began is the start of the record.
	began time.Time

	mu sync.Mutex
	// roots is the time of the last connection by the fingerprint of the authority that accepted it.
	roots map[string]time.Time
}

// NewServing returns an empty record that begins now.
func NewServing(clk clock.PassiveClock) *Serving {
	return &Serving{clock: clk, began: clk.Now(), roots: map[string]time.Time{}}
}

// Record is called for each connection, including those with a resumed session. It refuses none.
func (s *Serving) Record(state tls.ConnectionState) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	for _, chain := range state.VerifiedChains {
		s.roots[fingerprint(chain[len(chain)-1])] = s.clock.Now()
	}
	return nil
}

// Fingerprints returns those of the authorities in use. It is empty if the kubeconfig disables verification.
func (s *Serving) Fingerprints() sets.Set[string] {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	return sets.KeySet(s.roots)
}

// Began returns the start of the record.
func (s *Serving) Began() time.Time { return s.began }

// forget drops the authorities that are not in use any more. The caller holds the lock.
func (s *Serving) forget() {
	maps.DeleteFunc(s.roots, func(_ string, last time.Time) bool { return s.clock.Now().Sub(last) > servingMemory })
}
