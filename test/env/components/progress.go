package components

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// progress is the progress of a build.
type progress struct {
	started time.Time
	total   int

	mu    sync.Mutex
	done  int
	since map[string]time.Time
	costs map[string]int
}

func newProgress(components []Component, now time.Time) *progress {
	return &progress{started: now, total: cost(components), since: map[string]time.Time{}, costs: map[string]int{}}
}

func (p *progress) begin(c Component, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since[c.binary], p.costs[c.binary] = now, c.cost
}

func (p *progress) end(c Component) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.since, c.binary)
	p.done += c.cost
}

// mostOfOne limits the counted share of a component until it is built.
const mostOfOne = 0.95

// share returns the completed share of the work, from 0 to 1. Running builds count by their time: of two
// parallel builds, each has one of two processors.
func (p *progress) share(now time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.total == 0 {
		return 0
	}
	done := float64(p.done)
	for name, since := range p.since {
		done += min(now.Sub(since).Seconds(), mostOfOne*float64(p.costs[name]))
	}
	return done / float64(p.total)
}

// text returns the running builds and their durations.
func (p *progress) text(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var building []string
	for _, name := range slices.Sorted(maps.Keys(p.since)) {
		building = append(building, fmt.Sprintf("%s (%s)", name, now.Sub(p.since[name]).Round(time.Second)))
	}
	return strings.Join(building, ", ")
}
