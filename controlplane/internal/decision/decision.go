// Package decision holds the types of the packages that decide about an installed cluster: removal, scaling,
// remediation, upgrade. A Blocker is why an action is not taken now, and whether an event reports its end.
package decision

import (
	"fmt"
	"slices"
	"strings"
)

// Blocker is why an action is not taken now. Contrary evidence and missing facts are Blockers.
type Blocker struct {
	// Reason is that of the condition, Message names the cause and the action.
	Reason, Message string
	// Watched is true when an event arrives at the end of the wait. Otherwise the cluster must be inspected
	// again after a time.
	Watched bool
}

// Wait returns a Blocker whose end no event reports.
func Wait(reason, format string, args ...any) Blocker {
	return Blocker{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Watch returns a Blocker whose end an event reports.
func Watch(reason, format string, args ...any) Blocker {
	return Blocker{Reason: reason, Message: fmt.Sprintf(format, args...), Watched: true}
}

// About prefixes the message with the blocked action.
func (b Blocker) About(format string, args ...any) Blocker {
	b.Message = fmt.Sprintf(format, args...) + ": " + b.Message
	return b
}

// Join returns one Blocker for a list that must not be empty. It has the reason of the first, and is watched
// only if all are.
func Join(blockers []Blocker) Blocker {
	messages := make([]string, 0, len(blockers))
	for _, b := range blockers {
		messages = append(messages, b.Message)
	}
	return Blocker{
		Reason:  blockers[0].Reason,
		Message: strings.Join(messages, "; "),
		Watched: !slices.ContainsFunc(blockers, func(b Blocker) bool { return !b.Watched }),
	}
}
