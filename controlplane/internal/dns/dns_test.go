package dns

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

const name = "api.c1.lab.example"

// resolver returns a Resolver whose DNS responds after a second.
func resolver(found []netip.Addr, err error) (r *Resolver, queries *atomic.Int32) {
	queries = &atomic.Int32{}
	r = NewResolver(clock.RealClock{})
	r.lookup = func(ctx context.Context, network, host string) ([]netip.Addr, error) {
		queries.Add(1)
		if network != "ip" || host != name+"." {
			return nil, errors.New("unexpected query")
		}
		select {
		case <-time.After(time.Second):
			return found, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return r, queries
}

// resolved queries the name, and returns the result.
func resolved(r *Resolver) facts.Name {
	done := make(chan struct{}, 1)
	r.Addresses(name, func() { done <- struct{}{} })
	<-done
	found, _ := r.Addresses(name, func() { panic("unexpected query") })
	return found
}

func TestResults(t *testing.T) {
	v4, v6 := netip.MustParseAddr("192.168.111.5"), netip.MustParseAddr("fd00::5")
	for situation, tc := range map[string]struct {
		found []netip.Addr
		err   error
		want  facts.Name
	}{
		"addresses": {
			[]netip.Addr{v6, netip.MustParseAddr("::ffff:192.168.111.5"), v4},
			nil,
			facts.Name{Answered: true, Addresses: []netip.Addr{v4, v6}},
		},
		"no such name":    {nil, &net.DNSError{IsNotFound: true}, facts.Name{Answered: true}},
		"DNS timeout":     {nil, &net.DNSError{IsTimeout: true}, facts.Name{Answered: true, Failure: "DNS does not answer"}},
		"context timeout": {nil, context.DeadlineExceeded, facts.Name{Answered: true, Failure: "DNS does not answer"}},
		"refused": {
			nil, errors.New("lookup on 10.0.0.1: server misbehaving"),
			facts.Name{Answered: true, Failure: "DNS gives no answer"},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := resolver(tc.found, tc.err)
				NewWithT(t).Expect(resolved(r)).To(Equal(tc.want))
			})
		})
	}
}

func TestAddressesDoesNotBlockOrRepeatQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		r, questions := resolver([]netip.Addr{netip.MustParseAddr("192.168.111.5")}, nil)
		var done atomic.Int32
		for range 3 {
			found, _ := r.Addresses(name, func() { done.Add(1) })
			g.Expect(found).To(Equal(facts.Name{}), "no result yet")
			synctest.Wait()
		}
		<-time.After(2 * time.Second)
		g.Expect(done.Load()).To(BeEquivalentTo(3), "all callers are notified")
		g.Expect(questions.Load()).To(BeEquivalentTo(1))

		<-time.After(2 * time.Minute)
		found, left := r.Addresses(name, nil)
		g.Expect(found.Addresses).To(HaveLen(1))
		g.Expect(left).To(BeNumerically("~", 3*time.Minute, 5*time.Second), "the result is valid for five minutes")

		<-time.After(3 * time.Minute)
		found, _ = r.Addresses(name, func() {})
		g.Expect(found.Addresses).To(HaveLen(1), "the former result is returned during the query")
		<-time.After(2 * time.Second)
		g.Expect(questions.Load()).To(BeEquivalentTo(2))
	})
}

func TestUnresponsiveDNS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := resolver(nil, nil)
		r.lookup = func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		began := time.Now()
		NewWithT(t).Expect(resolved(r).Failure).To(Equal("DNS does not answer"))
		NewWithT(t).Expect(time.Since(began)).To(Equal(attemptTimeout))
	})
}
