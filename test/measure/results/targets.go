package results

import (
	"slices"
	"time"
)

// Target is a figure with its limit.
type Target struct {
	What  string  `json:"what"`
	Found float64 `json:"found"`
	Limit float64 `json:"limit"`
}

// Met reports whether the figure is within its limit. NaN is not.
func (t Target) Met() bool { return t.Found <= t.Limit }

// Targets are all targets of a run.
type Targets []Target

// Add adds a figure. The margin multiplies its limit.
func (t *Targets) Add(what string, found, limit, margin float64) {
	*t = append(*t, Target{What: what, Found: found, Limit: Round2(limit * margin)})
}

// Missed reports whether a target was missed.
func (t Targets) Missed() bool {
	return slices.ContainsFunc(t, func(target Target) bool { return !target.Met() })
}

// Print adds a heading, and a row for each target.
func (t Targets) Print(table *Table) {
	table.Row("")
	table.Row("TARGET", "found", "at most", "")
	for _, target := range t {
		verdict := "ok"
		if !target.Met() {
			verdict = "MISSED"
		}
		table.Row(target.What, target.Found, target.Limit, verdict)
	}
}

// Reference is the name of the reaction that all reactions are compared with: no reaction can be faster.
const Reference = "for reference: one write, until it is seen"

const (
	// reactionFactor is the largest ratio between a reaction and its writes.
	reactionFactor = 2
	// idleReaction is the limit of a reaction on a machine with idle processors.
	idleReaction = 250 * time.Millisecond
)

// ReactionLimit returns the limit of the 99th percentile of a reaction in milliseconds. reference is the 99th percentile
// of one write in milliseconds, and writes is the number of successive writes in the reaction.
func ReactionLimit(reference float64, writes int) float64 {
	return max(Milliseconds(idleReaction), reactionFactor*reference*float64(writes))
}
