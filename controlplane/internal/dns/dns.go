// Package dns finds out where the names of clusters lead, as seen from the hub.
package dns

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

const (
	// attemptTimeout limits one question.
	attemptTimeout = 10 * time.Second
	// fresh is for how long an answer counts. DNS cannot be watched.
	fresh = 5 * time.Minute
	// remembered is the number of names that are remembered, three for each cluster that is being installed: what is forgotten too early would be asked for without end.
	remembered = 1 << 16
)

// Resolver asks DNS, at most every five minutes for each name. No caller waits for it.
type Resolver struct {
	lookup  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	now     func() time.Time
	answers *lru.Cache[string, answer]
	asking  singleflight.Group
}

type answer struct {
	name facts.Name
	at   time.Time
}

// NewResolver returns a Resolver that asks as the manager's process is told to: in a pod, the DNS of the hub.
func NewResolver() *Resolver {
	return &Resolver{lookup: net.DefaultResolver.LookupNetIP, now: time.Now, answers: lru.New[string, answer](remembered)}
}

// Addresses returns what is known of a fully qualified name, and for how long that counts. When it is to be asked for, done is called once there is an answer.
func (r *Resolver) Addresses(name string, done func()) (facts.Name, time.Duration) {
	var last answer
	if found, ok := r.answers.Get(name); ok {
		last = found
		if left := fresh - r.now().Sub(last.at); left > 0 {
			return last.name, left
		}
	}
	go func() {
		_, _, _ = r.asking.Do(name, func() (any, error) {
			r.answers.Add(name, answer{r.lookUp(name), r.now()})
			return nil, nil //nolint:nilnil // the answer is remembered
		})
		done()
	}()
	return last.name, fresh
}

// lookUp looks the name up as it stands, without the search domains of the manager's pod.
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
	answer := facts.Name{Answered: true}
	for _, address := range found {
		answer.Addresses = append(answer.Addresses, address.Unmap())
	}
	slices.SortFunc(answer.Addresses, netip.Addr.Compare)
	answer.Addresses = slices.Compact(answer.Addresses)
	return answer
}
