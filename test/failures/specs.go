// Package failures prints the failures of tests with their causes. It reports the specs of a suite at the end of the
// suite, and all failures in the log of make test.
package failures

import (
	"fmt"
	"io"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// Evidence is the name of report entries with possible causes of the failure of a spec, one in each line.
const Evidence = "evidence"

// A failure is printed in lines that fit into the end of a log. The output of the spec has the rest.
const (
	maxLines    = 30
	maxEvidence = 20
	maxLine     = 400
)

// failed begins a failure. Its other lines are indented.
const failed = "FAILED "

// Report prints the failures of a suite at its end. If only the last lines of a run are kept, the summary alone has the
// names of specs without reasons.
func Report(out io.Writer, report types.Report) {
	for _, spec := range report.SpecReports {
		if !spec.State.Is(types.SpecStateFailureStates) {
			continue
		}
		var evidence []string
		for _, entry := range spec.ReportEntries {
			if entry.Name == Evidence {
				evidence = append(evidence, shortened(entry.StringRepresentation(), maxEvidence)...)
			}
		}
		lines := append(shortened(spec.FailureMessage(), maxLines-len(evidence)), evidence...)
		_, _ = fmt.Fprintf(out, "\n%s%s after %.0f s, at %s\n  %s\n", failed, spec.FullText(), spec.RunTime.Seconds(),
			spec.FailureLocation(), strings.Join(lines, "\n  "))
	}
}

// shortened returns the first lines of a text that are not empty.
func shortened(text string, limit int) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \n"); line == "" {
			continue
		}
		if len(lines) == limit {
			return append(lines[:limit-1], "...")
		}
		if len(line) > maxLine {
			line = line[:maxLine] + "..."
		}
		lines = append(lines, line)
	}
	return lines
}
