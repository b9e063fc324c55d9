package assisted

import (
	"fmt"
	"time"
)

// ResponseTimeout is far above the seconds that assisted-service takes for an automatic step of one object. Its
// controllers process one object at a time: the last of many clusters that are created together waits longer than a
// minute. Every object does so while a new version of assisted-service rolls out.
const ResponseTimeout = 3 * time.Minute

// NotResponding returns the message that assisted-service has not responded to an object since a time.
func NotResponding(to, namespace string, since time.Time) string {
	return fmt.Sprintf(
		"assisted-service has not responded to %s since %s. Check that it and its database run, that it watches namespace %s, and its log",
		to,
		since.UTC().Format(time.RFC3339),
		namespace,
	)
}
