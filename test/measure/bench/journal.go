package bench

import (
	"slices"
	"sync"
	"time"
)

// lasting is the shortest time for which all causes must hold until their act is expected. Managers may miss shorter
// states.
const lasting = 2 * time.Second

// skew is how much earlier than its cause an effect may be seen, because each kind has its own watch.
const skew = 100 * time.Millisecond

// fact is a state of an object.
type fact struct {
	what    string
	subject string
}

// need is satisfied while any of its facts holds.
type need []fact

// interval is a time in which a fact held. Its end is zero while the fact holds.
type interval struct{ begin, end time.Time }

// effect is the act of a manager in a hand-over.
type effect struct {
	handOver string
	subject  string
	at       time.Time
	needs    []need
}

// reaction is the time from the last of the causes of an effect to the effect.
type reaction struct {
	handOver string
	subject  string
	took     time.Duration
	// decisive is the last cause, and causes are all causes.
	decisive fact
	causes   []fact
}

// journal records the facts and the acts of the managers.
type journal struct {
	mu      sync.Mutex
	facts   map[fact][]interval
	held    map[string]map[string]bool // subjects of which a fact holds now
	effects map[fact]effect            // by hand-over and subject; the first one counts
	wanted  map[fact][]need            // needs of expected acts, by hand-over and subject
	changed chan struct{}              // closed at the next change
}

func newJournal() *journal {
	return &journal{
		facts: map[fact][]interval{}, held: map[string]map[string]bool{}, effects: map[fact]effect{},
		wanted: map[fact][]need{}, changed: make(chan struct{}),
	}
}

// note records whether a fact holds at a time.
func (j *journal) note(what, subject string, holds bool, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	key := fact{what, subject}
	held := j.facts[key]
	open := len(held) > 0 && held[len(held)-1].end.IsZero()
	switch {
	case holds && !open:
		j.facts[key] = append(held, interval{begin: at})
	case !holds && open:
		held[len(held)-1].end = at
	default:
		return
	}
	if j.held[what] == nil {
		j.held[what] = map[string]bool{}
	}
	if j.held[what][subject] = true; !holds {
		delete(j.held[what], subject)
	}
	j.notify()
}

// act records the first act of a hand-over.
func (j *journal) act(e effect) {
	j.mu.Lock()
	defer j.mu.Unlock()
	key := fact{e.handOver, e.subject}
	if _, known := j.effects[key]; !known {
		j.effects[key] = e
		j.notify()
	}
}

// expect records that a manager acts as soon as all needs are satisfied.
func (j *journal) expect(handOver, subject string, needs ...need) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.wanted[fact{handOver, subject}] = needs
}

// unanswered returns the expected acts that were not seen, although their causes held for long enough.
func (j *journal) unanswered() []effect {
	j.mu.Lock()
	defer j.mu.Unlock()
	var missing []effect
	for key, needs := range j.wanted {
		if _, known := j.effects[key]; !known && lasted(needs, j.facts) {
			missing = append(missing, effect{handOver: key.what, subject: key.subject, needs: needs})
		}
	}
	return missing
}

// lasted reports whether all needs were satisfied together for long enough.
func lasted(needs []need, facts map[fact][]interval) bool {
	satisfied := func(at time.Time) bool {
		return !slices.ContainsFunc(needs, func(n need) bool {
			_, _, held := heldSince(n, at, facts)
			return !held
		})
	}
	for _, f := range slices.Concat(needs...) {
		for _, held := range facts[f] {
			if satisfied(held.begin) && satisfied(held.begin.Add(lasting)) {
				return true
			}
		}
	}
	return false
}

// done reports whether a manager has acted.
func (j *journal) done(handOver, subject string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, known := j.effects[fact{handOver, subject}]
	return known
}

// notify wakes the waiters for a change. It requires that mu is locked.
func (j *journal) notify() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// since returns when a fact began to hold, or false if it does not hold now.
func (j *journal) since(f fact) (time.Time, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	held := j.facts[f]
	if len(held) == 0 || !held[len(held)-1].end.IsZero() {
		return time.Time{}, false
	}
	return held[len(held)-1].begin, true
}

// holding returns the subjects of which a fact holds now.
func (j *journal) holding(what string, subject func(string) bool) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []string
	for held := range j.held[what] {
		if subject(held) {
			found = append(found, held)
		}
	}
	return found
}

// reactions pairs the acts of the managers with their causes. unexplained are acts whose causes were not seen.
func (j *journal) reactions() (paired []reaction, unexplained []effect) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.effects {
		if r, ok := pair(e, j.facts); ok {
			paired = append(paired, r)
		} else {
			unexplained = append(unexplained, e)
		}
	}
	return paired, unexplained
}

// pair finds the last cause of an effect. It returns false if a cause did not hold at the time.
func pair(e effect, facts map[fact][]interval) (reaction, bool) {
	r := reaction{handOver: e.handOver, subject: e.subject}
	var last time.Time
	for _, wanted := range e.needs {
		cause, begin, ok := heldSince(wanted, e.at, facts)
		if !ok {
			return reaction{}, false
		}
		r.causes = append(r.causes, cause)
		if r.decisive == (fact{}) || begin.After(last) {
			r.decisive, last = cause, begin
		}
	}
	r.took = max(0, e.at.Sub(last))
	return r, r.decisive != (fact{})
}

// heldSince returns the fact of a need that held at a time, or began within the skew, and when it began.
func heldSince(wanted need, at time.Time, facts map[fact][]interval) (fact, time.Time, bool) {
	for _, f := range wanted {
		for _, held := range slices.Backward(facts[f]) {
			started := !held.begin.After(at.Add(skew))
			if started && (held.end.IsZero() || !held.end.Before(at)) {
				return f, held.begin, true
			}
		}
	}
	return fact{}, time.Time{}, false
}
