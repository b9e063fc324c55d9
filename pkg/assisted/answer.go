package assisted

import (
	"fmt"
	"time"
)

// AnswerTime is far longer than assisted-service takes for what it does by itself, which is seconds.
const AnswerTime = time.Minute

// NotResponding says, for people, that assisted-service has not responded to something since a time.
func NotResponding(to, namespace string, since time.Time) string {
	return fmt.Sprintf("assisted-service has not responded to %s since %s: check that it and its database run, that it watches the namespace %s, and what it logs",
		to, since.UTC().Format(time.RFC3339), namespace)
}
