// Package reconciletest reads in tests what reconcilers write into their logs.
package reconciletest

import (
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// Log is a log that remembers the messages which were written to it, in order. Each line is also given to check, with
// its keys and their values.
func Log(check func(keys string)) (log logr.Logger, messages func() []string) {
	var lines []string
	log = funcr.New(func(_, args string) {
		_, message, _ := strings.Cut(args, `"msg"="`)
		message, keys, _ := strings.Cut(message, `" "`)
		check(keys)
		lines = append(lines, message)
	}, funcr.Options{})
	return log, func() []string { return lines }
}
