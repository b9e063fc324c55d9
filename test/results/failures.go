package results

import (
	"fmt"
	"io"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// Evidence is the name of report entries that say, beside the message, what may be to blame for the failure of a spec:
// a line for each thing.
const Evidence = "evidence"

// A failure is told in lines that fit into the end of a log. What is left out stands in the output of the spec.
const (
	mostLines    = 30
	mostEvidence = 20
	longestLine  = 400
)

// failed begins what is told of a failure; the lines that belong to it are indented.
const failed = "FAILED "

// TellFailures says again, at the end of a suite, why specs failed: where only the last lines of a run are kept, the
// summary alone names them without a reason.
func TellFailures(out io.Writer, report types.Report) {
	for _, spec := range report.SpecReports {
		if !spec.State.Is(types.SpecStateFailureStates) {
			continue
		}
		var evidence []string
		for _, entry := range spec.ReportEntries {
			if entry.Name == Evidence {
				evidence = append(evidence, shortened(entry.StringRepresentation(), mostEvidence)...)
			}
		}
		lines := append(shortened(spec.FailureMessage(), mostLines-len(evidence)), evidence...)
		_, _ = fmt.Fprintf(out, "\n%s%s after %.0f s, at %s\n  %s\n", failed, spec.FullText(), spec.RunTime.Seconds(),
			spec.FailureLocation(), strings.Join(lines, "\n  "))
	}
}

// shortened are the first lines of a text, without those that are empty.
func shortened(text string, most int) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \n"); line == "" {
			continue
		}
		if len(lines) == most {
			return append(lines[:most-1], "...")
		}
		if len(line) > longestLine {
			line = line[:longestLine] + "..."
		}
		lines = append(lines, line)
	}
	return lines
}
