// Package bound limits texts and responses from outside: hosts, workload clusters, registries and
// assisted-service. An unlimited text makes a status unwritable: the API server rejects a condition whose
// message is longer than 32,768 characters. It then rejects the whole status.
package bound

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize/english"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The limits of texts, in bytes of UTF-8.
const (
	// MessageBytes is the longest message of a condition or an Event. The API server counts the bytes of an
	// Event's note and allows 1,024 of them (NoteLengthLimit, pkg/apis/core/validation/events.go of
	// Kubernetes).
	MessageBytes = 1024
	// ValueBytes is the longest foreign value in a message: a serial number, hostname or product name. The
	// longest hostname of Linux has 64 bytes.
	ValueBytes = 64
	// CauseBytes is the longest foreign sentence in a message: what another program reports.
	CauseBytes = 512
	// listBytes is the length to which the items of a long list are cut together, so that cause and action
	// still fit into MessageBytes.
	listBytes = 700
	// cleanedBytes is how much of a text is read. A longer text is cut off in any case.
	cleanedBytes = 64 << 10
)

// Items is how many items of a list a message names.
const Items = 3

const ellipsis = "…"

// Message returns a text as it may stand in a condition or an Event. It keeps line breaks, with which Cluster
// API separates the conditions of several Machines.
func Message(text string) string { return shorten(clean(text, true), MessageBytes) }

// Value returns a foreign value on one line: a serial number, hostname, model or address.
func Value(text string) string { return shorten(clean(text, false), ValueBytes) }

// Cause returns what another program reports, on one line. It does not remove credentials: see assisted.RedactURLs, which calls it.
func Cause(text string) string { return shorten(clean(text, false), CauseBytes) }

// Shorten returns a foreign text on one line with another limit, in bytes.
func Shorten(text string, limit int) string { return shorten(clean(text, false), limit) }

// Identifier returns a foreign version, image or name unchanged. It returns "" if it is longer than limit
// bytes or not plain ASCII: a part of it would identify another object.
func Identifier(text string, limit int) string {
	if len(text) > limit || !isClean(text, false) {
		return ""
	}
	return text
}

// FitBefore returns a text, shortened so that text and suffix fit into one message.
func FitBefore(text, suffix string) string {
	return shorten(clean(text, true), max(MessageBytes-len(suffix), MessageBytes/4))
}

// List returns the first items, and the number of the others: "a, b, c and 5 more".
func List(items []string) string {
	shown := strings.Join(share(items), ", ")
	if more := len(items) - Items; more > 0 {
		return fmt.Sprintf("%s and %d more", shown, more)
	}
	return shown
}

// Join returns the first of several findings, and the number of the others: "a; b; c; 5 more hosts". An empty
// kind is "5 more".
func Join(findings []string, kind string) string {
	shown := share(findings)
	more := len(findings) - Items
	switch {
	case more > 0 && kind == "":
		shown = append(shown, fmt.Sprintf("%d more", more))
	case more > 0:
		shown = append(shown, english.Plural(more, "more "+kind, ""))
	}
	return strings.Join(shown, "; ")
}

// share returns the items that a list names. If they are too long together, each is cut to its share, so that
// a long item does not displace the others.
func share(items []string) []string {
	items = items[:min(len(items), Items)]
	shown, total := make([]string, 0, len(items)+1), 0
	for _, item := range items {
		total += len(item)
	}
	for _, item := range items {
		if total > listBytes {
			item = shorten(clean(item, true), listBytes/len(items))
		}
		shown = append(shown, item)
	}
	return shown
}

// Conditions bounds the messages of conditions in place. Both providers call it on every status before they compare and write it.
func Conditions(conditions []metav1.Condition) {
	for i := range conditions {
		conditions[i].Message = Message(conditions[i].Message)
	}
}

// shorten cuts a text between characters, and marks the cut with an ellipsis.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimRight(text[:end], " \n") + ellipsis
}

// clean returns valid UTF-8 without characters that control a terminal or a browser: control characters, and
// those that change the direction of writing (Trojan source).
func clean(text string, keepBreaks bool) string {
	if isClean(text, keepBreaks) {
		return text
	}
	text = strings.ToValidUTF8(text[:min(len(text), cleanedBytes)], "\uFFFD")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' && keepBreaks, unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		}
		return -1
	}, text))
}

// isClean reports whether a text is plain ASCII, as nearly all texts are.
func isClean(text string, keepBreaks bool) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c > '~') && (c != '\n' || !keepBreaks) {
			return false
		}
	}
	return true
}
