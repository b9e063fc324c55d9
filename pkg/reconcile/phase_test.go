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
		"all phases, in order":       {proceed: true, ran: []string{"first", "decides", "last"}},
		"what follows has to wait":   {ran: []string{"first", "decides"}},
		"nothing follows an error":   {proceed: true, err: broken, ran: []string{"first", "decides"}},
		"nor one that waits as well": {err: broken, ran: []string{"first", "decides"}},
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

func TestTheEarliestWins(t *testing.T) {
	g := NewWithT(t)
	var again Again
	g.Expect(again.After()).To(BeZero())
	for _, wish := range []time.Duration{time.Minute, time.Second, time.Hour} {
		again.In(wish)
	}
	g.Expect(again.After()).To(Equal(time.Second))
	again.In(0)
	g.Expect(again.After()).To(Equal(time.Second), "zero is never")
}
