package results

import (
	"math"
	"slices"
)

// Target is a figure with what it may be at most.
type Target struct {
	What  string  `json:"what"`
	Found float64 `json:"found"`
	Limit float64 `json:"limit"`
}

// Met reports whether the figure is not beyond what it may be. One that is no number is.
func (t Target) Met() bool { return t.Found <= t.Limit }

// Targets are all that a run is judged by.
type Targets []Target

// Add adds a figure, whose limit is multiplied by the margin that a machine is given which does other things, too.
func (t *Targets) Add(what string, found, limit, margin float64) {
	*t = append(*t, Target{What: what, Found: found, Limit: math.Round(100*limit*margin) / 100})
}

// Missed reports whether a target was missed.
func (t Targets) Missed() bool {
	return slices.ContainsFunc(t, func(target Target) bool { return !target.Met() })
}

// Print adds a row for each target, after a heading.
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
