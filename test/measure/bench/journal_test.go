package bench

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestReactionsArePairedWithLastCause(t *testing.T) {
	start := time.Now()
	at := func(milliseconds int) time.Time { return start.Add(time.Duration(milliseconds) * time.Millisecond) }
	ready, accepts, adds := fact{"ready", "a"}, fact{"accepts", "c"}, fact{"adds", "c"}
	bound := func(milliseconds int) effect {
		return effect{handOver: "bound", subject: "a", at: at(milliseconds), needs: []need{{ready}, {accepts, adds}}}
	}
	type note struct {
		of    fact
		holds bool
		at    int
	}
	for name, test := range map[string]struct {
		notes    []note
		effect   effect
		took     time.Duration
		decisive fact
		refused  bool
	}{
		"the last cause counts": {
			notes:  []note{{accepts, true, 0}, {ready, true, 10}},
			effect: bound(15), took: 5 * time.Millisecond, decisive: ready,
		},
		"another order, another cause": {
			notes:  []note{{ready, true, 0}, {accepts, true, 10}},
			effect: bound(13), took: 3 * time.Millisecond, decisive: accepts,
		},
		"an alternative that no longer holds does not count": {
			notes:  []note{{accepts, true, 0}, {accepts, false, 20}, {ready, true, 30}, {adds, true, 100}},
			effect: bound(104), took: 4 * time.Millisecond, decisive: adds,
		},
		"an interrupted fact counts from its last begin": {
			notes:  []note{{accepts, true, 0}, {ready, true, 1}, {ready, false, 5}, {ready, true, 50}},
			effect: bound(57), took: 7 * time.Millisecond, decisive: ready,
		},
		"a repeated note changes nothing": {
			notes:  []note{{accepts, true, 0}, {ready, true, 1}, {ready, true, 5}},
			effect: bound(6), took: 5 * time.Millisecond, decisive: ready,
		},
		"an effect that is seen shortly before its cause took no time": {
			notes:  []note{{accepts, true, 0}, {ready, true, 12}},
			effect: bound(10), took: 0, decisive: ready,
		},
		"an effect long before its cause is not explained": {
			notes:  []note{{accepts, true, 0}, {ready, true, 500}},
			effect: bound(10), refused: true,
		},
		"an effect without one of its causes is not explained": {
			notes:  []note{{ready, true, 0}},
			effect: bound(10), refused: true,
		},
		"an effect that needs nothing is not explained": {
			effect: effect{handOver: "bound", subject: "a", at: at(1)}, refused: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			j := newJournal()
			for _, n := range test.notes {
				j.note(n.of.what, n.of.subject, n.holds, at(n.at))
			}
			j.act(test.effect)
			paired, unexplained := j.reactions()
			if test.refused {
				g.Expect(paired).To(BeEmpty())
				g.Expect(unexplained).To(HaveLen(1))
				return
			}
			g.Expect(unexplained).To(BeEmpty())
			g.Expect(paired).To(HaveLen(1))
			g.Expect(paired[0].causes).To(And(HaveLen(2), ContainElement(test.decisive)))
			paired[0].causes = nil
			g.Expect(paired).To(ConsistOf(reaction{handOver: "bound", subject: "a", took: test.took, decisive: test.decisive}))
		})
	}
}

func TestFirstActCounts(t *testing.T) {
	g := NewWithT(t)
	start := time.Now()
	j := newJournal()
	j.note("ready", "a", true, start)
	for i := range 3 {
		j.act(effect{handOver: "bound", subject: "a", at: start.Add(time.Duration(i+1) * time.Second), needs: []need{{{"ready", "a"}}}})
	}
	paired, _ := j.reactions()
	g.Expect(paired).To(HaveLen(1))
	g.Expect(paired[0].took).To(Equal(time.Second))
}

func TestJournalKnowsHoldingFacts(t *testing.T) {
	g := NewWithT(t)
	start := time.Now()
	j := newJournal()
	j.note("ready", "a/1", true, start)
	j.note("ready", "a/2", true, start)
	j.note("ready", "a/2", false, start.Add(time.Second))
	j.note("ready", "b/1", true, start)
	g.Expect(j.holding("ready", beginsWith("a/"))).To(ConsistOf("a/1"))
	_, holds := j.since(fact{"ready", "a/2"})
	g.Expect(holds).To(BeFalse())
	since, holds := j.since(fact{"ready", "b/1"})
	g.Expect(holds).To(BeTrue())
	g.Expect(since).To(Equal(start))
}

func TestCausesWithoutActAreUnanswered(t *testing.T) {
	start := time.Now()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	ready, accepts, adds := fact{"ready", "a"}, fact{"accepts", "c"}, fact{"adds", "c"}
	type note struct {
		of    fact
		holds bool
		at    int
	}
	for name, test := range map[string]struct {
		notes   []note
		acts    bool
		missing bool
	}{
		"no cause":                                  {},
		"one of two causes":                         {notes: []note{{ready, true, 0}}},
		"all causes, and no act":                    {notes: []note{{ready, true, 0}, {accepts, true, 9}}, missing: true},
		"all causes, and the act":                   {notes: []note{{ready, true, 0}, {accepts, true, 9}}, acts: true},
		"an alternative is a cause too":             {notes: []note{{adds, true, 0}, {ready, true, 9}}, missing: true},
		"a cause that ended before the other began": {notes: []note{{ready, true, 0}, {ready, false, 5}, {accepts, true, 9}}},
		"together for a moment only":                {notes: []note{{ready, true, 0}, {accepts, true, 9}, {ready, false, 10}}},
		"a cause that ended after it held for long": {notes: []note{{ready, true, 0}, {accepts, true, 9}, {ready, false, 20}}, missing: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			j := newJournal()
			needs := []need{{ready}, {accepts, adds}}
			j.expect("bound", "a", needs...)
			for _, n := range test.notes {
				j.note(n.of.what, n.of.subject, n.holds, at(n.at))
			}
			if test.acts {
				j.act(effect{handOver: "bound", subject: "a", at: at(30), needs: needs})
			}
			if !test.missing {
				g.Expect(j.unanswered()).To(BeEmpty())
				return
			}
			g.Expect(j.unanswered()).To(ConsistOf(effect{handOver: "bound", subject: "a", needs: needs}))
		})
	}
}
