// Package findings holds the results of the phases of one reconcile for users: what blocks or passed each task, and
// Events. Both providers use its vocabulary. The report composes the conditions of the status from the findings.
package findings

import "fmt"

// Outcome is the reason and the message of a task that is blocked or passed, as a condition reports them.
type Outcome struct{ Reason, Message string }

// Findings are the results of the phases, by task. A task is a step of the reconcile that may be blocked. The zero
// value has no results.
type Findings[Task ~string] struct {
	results map[Task]result
	events  []Event
}

type result struct {
	outcome Outcome
	passed  bool
}

// Block records the blocker or the problem of a task. The last result of a task wins. Block returns false, with which a
// phase stops the phases that follow.
func (f *Findings[Task]) Block(task Task, reason, message string) (proceed bool) {
	f.record(task, result{outcome: Outcome{reason, message}})
	return false
}

// Blockf is Block with a formatted message.
func (f *Findings[Task]) Blockf(task Task, reason, format string, args ...any) (proceed bool) {
	return f.Block(task, reason, fmt.Sprintf(format, args...))
}

// Pass records that a task is done. The last result of a task wins.
func (f *Findings[Task]) Pass(task Task, reason, message string) {
	f.record(task, result{outcome: Outcome{reason, message}, passed: true})
}

func (f *Findings[Task]) record(task Task, r result) {
	if f.results == nil {
		f.results = map[Task]result{}
	}
	f.results[task] = r
}

// Blocked returns the blocker of a task; nil if the task is not blocked.
func (f *Findings[Task]) Blocked(task Task) *Outcome { return f.outcomeOf(task, false) }

// Passed returns the result of a task that is done; nil if the task is not done.
func (f *Findings[Task]) Passed(task Task) *Outcome { return f.outcomeOf(task, true) }

func (f *Findings[Task]) outcomeOf(task Task, passed bool) *Outcome {
	if r, ok := f.results[task]; ok && r.passed == passed {
		return &r.outcome
	}
	return nil
}

// Event is an Event about the reconciled object. No phase emits one: the report does, after the status.
type Event struct {
	// Type is Normal or Warning.
	Type, Reason, Message string
	// OfStatus is true for an Event about a state that the status records.
	OfStatus bool
}

// Event queues an Event about an action, which is taken once. The report emits the Event even if the status cannot be
// written: the next reconcile does not take the action again.
func (f *Findings[Task]) Event(eventType, reason, format string, args ...any) {
	f.events = append(f.events, Event{Type: eventType, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// StatusEvent queues an Event about a state that the status records. The report emits the Event once the status is
// written: until then the next reconcile finds the state again.
func (f *Findings[Task]) StatusEvent(eventType, reason, format string, args ...any) {
	f.events = append(f.events, Event{Type: eventType, Reason: reason, Message: fmt.Sprintf(format, args...), OfStatus: true})
}

// Events returns the queued Events in their order.
func (f *Findings[Task]) Events() []Event { return f.events }
