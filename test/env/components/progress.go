package components

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// progress is the progress of a build of several components.
type progress struct {
	started time.Time
	// components is their number, total the sum of their costs.
	components, total int

	mu sync.Mutex
	// built is the number of built components, done the sum of their costs.
	built, done int
	running     map[string]running
}

// running is the build of one component.
type running struct {
	cost        int
	compilation *compilation
}

func newProgress(components []Component, now time.Time) *progress {
	return &progress{started: now, components: len(components), total: cost(components), running: map[string]running{}}
}

// begin returns the output of the build of a component.
func (p *progress) begin(c Component) *compilation {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := running{cost: c.cost, compilation: &compilation{}}
	p.running[c.binary] = r
	return r.compilation
}

func (p *progress) end(c Component) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, c.binary)
	p.built++
	p.done += c.cost
}

// compiling is the share of the packages in the work for a program. The rest is the work of the linker.
const compiling = 0.95

// share returns the completed share of the work, from 0 to 1.
func (p *progress) share() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.total == 0 {
		return 0
	}
	done := float64(p.done)
	for _, r := range p.running {
		if compiled, total := r.compilation.packages(); total > 0 {
			done += compiling * float64(r.cost) * float64(compiled) / float64(total)
		}
	}
	return done / float64(p.total)
}

// predictable is the share of the work from which the duration of the rest can be estimated.
const predictable = 0.05

// text returns how many components are built and the time that the others take. A duration below a minute and an
// unreliable one are left out.
func (p *progress) text(now time.Time) string {
	p.mu.Lock()
	built := p.built
	p.mu.Unlock()
	text := fmt.Sprintf("%d of %d programs built", built, p.components)
	if share := p.share(); share >= predictable {
		left := time.Duration(float64(now.Sub(p.started)) * (1 - share) / share)
		if left >= time.Minute {
			text += fmt.Sprintf(", about %.0f min left", left.Minutes())
		}
	}
	return text
}

// building returns the components that are being built, with the number of their compiled packages.
func (p *progress) building() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var building []string
	for _, name := range slices.Sorted(maps.Keys(p.running)) {
		text := name
		if compiled, total := p.running[name].compilation.packages(); total > 0 {
			text = fmt.Sprintf("%s (%d of %d packages)", name, compiled, total)
		}
		building = append(building, text)
	}
	return strings.Join(building, ", ")
}
