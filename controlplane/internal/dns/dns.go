// Package dns resolves the names of clusters from the hub.
package dns

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

const (
	// attemptTimeout limits one query.
	attemptTimeout = 10 * time.Second
	// freshness is how long a result is used. DNS cannot be watched.
	freshness = 5 * time.Minute
	// cacheSize is the number of cached names. A cluster that is being installed needs three. A name that is
	// dropped too early would be queried without end.
	cacheSize = 1 << 16
)

// Resolver queries DNS at most every five minutes for each name. Callers do not wait.
type Resolver struct {
	lookup  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	clock   clock.PassiveClock
	results *lru.Cache[string, result]
	queries singleflight.Group
}

type result struct {
	name facts.Name
	at   time.Time
}

// NewResolver returns a Resolver that uses the configuration of the manager's process: in a Pod, the DNS of
// the hub.
func NewResolver(clk clock.PassiveClock) *Resolver {
	return &Resolver{lookup: net.DefaultResolver.LookupNetIP, clock: clk, results: lru.New[string, result](cacheSize)}
}

// Addresses returns the known addresses of a fully qualified name, and how long they are valid. If they are
// outdated, a query starts, and done is called after it.
func (r *Resolver) Addresses(name string, done func()) (facts.Name, time.Duration) {
	var last result
	if found, ok := r.results.Get(name); ok {
		last = found
		if left := freshness - r.clock.Now().Sub(last.at); left > 0 {
			return last.name, left
		}
	}
	go func() {
		_, _, _ = r.queries.Do(name, func() (any, error) {
			r.results.Add(name, result{r.lookUp(name), r.clock.Now()})
			return nil, nil //nolint:nilnil // the result is cached
		})
		done()
	}()
	return last.name, freshness
}

// lookUp resolves an absolute name, without the search domains of the manager's Pod.
func (r *Resolver) lookUp(name string) facts.Name {
	ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
	defer cancel()
	found, err := r.lookup(ctx, "ip", name+".")
	var failure *net.DNSError
	switch {
	case errors.As(err, &failure) && failure.IsNotFound:
		return facts.Name{Answered: true}
	case errors.As(err, &failure) && failure.IsTimeout, errors.Is(err, context.DeadlineExceeded):
		return facts.Name{Answered: true, Failure: "DNS does not answer"}
	case err != nil:
		return facts.Name{Answered: true, Failure: "DNS gives no answer"}
	}
	result := facts.Name{Answered: true}
	for _, address := range found {
		result.Addresses = append(result.Addresses, address.Unmap())
	}
	slices.SortFunc(result.Addresses, netip.Addr.Compare)
	result.Addresses = slices.Compact(result.Addresses)
	return result
}
