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

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

const name = "api.c1.lab.example"

// resolver is one whose DNS answers as told, after a second.
func resolver(found []netip.Addr, err error) (r *Resolver, questions *atomic.Int32) {
	questions = &atomic.Int32{}
	r = NewResolver()
	r.lookup = func(ctx context.Context, network, host string) ([]netip.Addr, error) {
		questions.Add(1)
		if network != "ip" || host != name+"." {
			return nil, errors.New("another question")
		}
		select {
		case <-time.After(time.Second):
			return found, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return r, questions
}

// answered asks until there is an answer.
func answered(r *Resolver) facts.Name {
	done := make(chan struct{}, 1)
	r.Addresses(name, func() { done <- struct{}{} })
	<-done
	found, _ := r.Addresses(name, func() { panic("it is known") })
	return found
}

func TestAnswers(t *testing.T) {
	v4, v6 := netip.MustParseAddr("192.168.111.5"), netip.MustParseAddr("fd00::5")
	for situation, tc := range map[string]struct {
		found []netip.Addr
		err   error
		want  facts.Name
	}{
		"addresses":         {[]netip.Addr{v6, netip.MustParseAddr("::ffff:192.168.111.5"), v4}, nil, facts.Name{Answered: true, Addresses: []netip.Addr{v4, v6}}},
		"no such name":      {nil, &net.DNSError{IsNotFound: true}, facts.Name{Answered: true}},
		"time-out":          {nil, &net.DNSError{IsTimeout: true}, facts.Name{Answered: true, Failure: "DNS does not answer"}},
		"an end of waiting": {nil, context.DeadlineExceeded, facts.Name{Answered: true, Failure: "DNS does not answer"}},
		"refused":           {nil, errors.New("lookup on 10.0.0.1: server misbehaving"), facts.Name{Answered: true, Failure: "DNS gives no answer"}},
	} {
		t.Run(situation, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := resolver(tc.found, tc.err)
				NewWithT(t).Expect(answered(r)).To(Equal(tc.want))
			})
		})
	}
}

func TestNobodyWaitsAndNothingIsAskedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		r, questions := resolver([]netip.Addr{netip.MustParseAddr("192.168.111.5")}, nil)
		var done atomic.Int32
		for range 3 {
			found, _ := r.Addresses(name, func() { done.Add(1) })
			g.Expect(found).To(Equal(facts.Name{}), "it is not known yet")
			synctest.Wait()
		}
		<-time.After(2 * time.Second)
		g.Expect(done.Load()).To(BeEquivalentTo(3), "all are told")
		g.Expect(questions.Load()).To(BeEquivalentTo(1))

		<-time.After(2 * time.Minute)
		found, left := r.Addresses(name, nil)
		g.Expect(found.Addresses).To(HaveLen(1))
		g.Expect(left).To(BeNumerically("~", 3*time.Minute, 5*time.Second), "the answer counts for five minutes")

		<-time.After(3 * time.Minute)
		found, _ = r.Addresses(name, func() {})
		g.Expect(found.Addresses).To(HaveLen(1), "the former answer is told while it is asked again")
		<-time.After(2 * time.Second)
		g.Expect(questions.Load()).To(BeEquivalentTo(2))
	})
}

func TestDNSThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := resolver(nil, nil)
		r.lookup = func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		began := time.Now()
		NewWithT(t).Expect(answered(r).Failure).To(Equal("DNS does not answer"))
		NewWithT(t).Expect(time.Since(began)).To(Equal(attemptTimeout))
	})
}
