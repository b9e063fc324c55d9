// Package reconciletest reads in tests what reconcilers write into their logs.
package reconciletest

import (
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// Log returns a logger and a function that returns its messages in order. It passes the keys and values of
// each line to check.
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
