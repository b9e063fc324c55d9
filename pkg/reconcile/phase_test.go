package reconcile

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestRun(t *testing.T) {
	broken := errors.New("broken")
	for situation, tc := range map[string]struct {
		proceed bool
		err     error
		ran     []string
	}{
		"all phases, in order":                      {proceed: true, ran: []string{"first", "decides", "last"}},
		"a phase stops: no phase follows":           {ran: []string{"first", "decides"}},
		"a phase fails: no phase follows":           {proceed: true, err: broken, ran: []string{"first", "decides"}},
		"a phase stops and fails: no phase follows": {err: broken, ran: []string{"first", "decides"}},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			var ran []string
			phase := func(name string, proceed bool, err error) Phase[*[]string] {
				return func(_ context.Context, known *[]string) (bool, error) {
					*known = append(*known, name)
					return proceed, err
				}
			}
			err := Run(t.Context(), &ran, phase("first", true, nil), phase("decides", tc.proceed, tc.err), phase("last", true, nil))
			if tc.err == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(tc.err))
			}
			g.Expect(ran).To(Equal(tc.ran))
		})
	}
}

func TestShortestDelayWins(t *testing.T) {
	g := NewWithT(t)
	var requeue Requeue
	g.Expect(requeue.Delay()).To(BeZero())
	for _, delay := range []time.Duration{time.Minute, time.Second, time.Hour} {
		requeue.In(delay)
	}
	g.Expect(requeue.Delay()).To(Equal(time.Second))
	requeue.In(0)
	g.Expect(requeue.Delay()).To(Equal(time.Second), "zero is ignored")
}
