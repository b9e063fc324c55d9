package failures

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Failure is a failure in a run of tests.
type Failure struct {
	// What is a spec, a test, a rule, a package that does not build, or a target of make.
	What string
	// Suite is the target of make.
	Suite string
	// Why are the lines of the output with the cause.
	Why []string
}

// The first lines of failures in the output of make test. The following lines of a failure are indented, except after
// panics and compiler errors.
var (
	// reported is written by [Report] and chaos.
	reported = regexp.MustCompile(`^(?:` + failed + `|BROKEN: )(.+)`)
	// test is written by go test for a test, broken for a package that does not build, and panicked for a panic or a
	// timeout.
	test     = regexp.MustCompile(`^--- FAIL: (\S+)`)
	broken   = regexp.MustCompile(`^# (\S+/\S+)(?: \[\S+\])?$`)
	panicked = regexp.MustCompile(`^(panic: .+|fatal error: .+)`)
	// ended is written by make for a target. target is written for a target whose command failed, unless the command is
	// another make, which reports the failure itself.
	ended  = regexp.MustCompile(`^make(?:\[\d+\])?: \*\*\* \[[^]]*: (\S+)\] Error \d+$`)
	target = regexp.MustCompile(`^make(?:\[\d+\])?: \*\*\* \[[^]]*: (\S+)\] Error (?:1|[3-9]|\d\d+)$`)
	// ends are the lines after a compiler error or a panic.
	ends = regexp.MustCompile(`^(FAIL|ok|exit status|make)\b`)
)

// reading is the position of [In] in a log.
type reading struct {
	failures []Failure
	// suite is the number of failures in suites that have ended, former the number in suites before the last one.
	suite, former int
	// open reports that the next lines may belong to the last failure, loose that lines without indentation do too.
	open, loose bool
	// before are the lines after the last failure.
	before []string
	// gaveUp reports that make failed.
	gaveUp bool
}

// In finds the failures in the output of make test. The output of each suite is contiguous.
func In(log io.Reader) ([]Failure, error) {
	var r reading
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			r.read(strings.TrimRight(line, "\r\n"))
		}
		if errors.Is(err, io.EOF) {
			return r.end(), nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the log: %w", err)
		}
	}
}

func (r *reading) read(line string) {
	for begin, loose := range map[*regexp.Regexp]bool{reported: false, broken: true, panicked: true} {
		if match := begin.FindStringSubmatch(line); match != nil && !(r.open && r.loose) {
			r.begin(match[1], loose)
			return
		}
	}
	switch match := test.FindStringSubmatch(line); {
	case match != nil:
		// With -v the output of a test is before this line, unless the test is a suite that reported its failures.
		output := r.before
		r.begin(match[1], false)
		if i := slices.Index(output, "=== RUN   "+match[1]); i >= 0 {
			r.add(last(output[i+1:])...)
		}
		return
	case target.MatchString(line):
		output := r.before
		if len(r.explained(r.suite)) == 0 {
			r.begin(target.FindStringSubmatch(line)[1], false)
			r.add(last(output)...)
		}
		r.before, r.former, r.suite = nil, r.suite, len(r.failures)
	}
	switch {
	case r.open && (r.loose && !ends.MatchString(line) || !r.loose && strings.HasPrefix(line, " ")):
		r.add(line)
	case ended.MatchString(line):
		r.open, r.gaveUp = false, true
		r.name(ended.FindStringSubmatch(line)[1])
	case r.open && strings.TrimSpace(line) == "":
	default:
		r.open = false
		r.before = append(r.before, line)
	}
}

// suites is the prefix of the outermost targets, which may share inner targets.
const suites = "suite-"

// name sets the suite of the failures of the last suite. The first reported target counts, unless a target with the
// prefix of suites follows.
func (r *reading) name(target string) {
	for i := r.former; i < r.suite; i++ {
		if r.failures[i].Suite == "" || strings.HasPrefix(target, suites) {
			r.failures[i].Suite = target
		}
	}
}

// end returns the failures. Without a known failure it returns the last lines.
func (r *reading) end() []Failure {
	failures := r.explained(0)
	if len(failures) == 0 && r.gaveUp {
		return []Failure{{What: "last lines", Suite: "make", Why: last(r.before)}}
	}
	return failures
}

func (r *reading) begin(what string, loose bool) {
	r.failures = append(r.failures, Failure{What: what})
	r.open, r.loose, r.before = true, loose, nil
}

func (r *reading) add(lines ...string) {
	last := &r.failures[len(r.failures)-1]
	last.Why = append(last.Why, lines...)
}

// explained returns the failures with a cause, beginning with an index.
func (r *reading) explained(from int) []Failure {
	return slices.DeleteFunc(slices.Clone(r.failures[from:]), func(f Failure) bool { return len(f.Why) == 0 })
}

// last returns the last lines, up to the limit of a failure.
func last(lines []string) []string { return lines[max(0, len(lines)-maxLines):] }

// maxLog is the number of lines of a failed run that are kept if only its end is kept.
const maxLog = 90

// Summarize writes the failures with their causes in as many lines as are kept of a failed run.
func Summarize(out io.Writer, failures []Failure) {
	_, _ = fmt.Fprintf(out, "\n==> %d failures\n", len(failures))
	limit := min(maxLines, max(3, maxLog/max(1, len(failures))))
	for i, f := range failures {
		_, _ = fmt.Fprintf(out, "%d. %s: %s\n", i+1, f.Suite, f.What)
		for _, line := range shortened(strings.Join(f.Why, "\n"), limit) {
			_, _ = fmt.Fprintf(out, "   %s\n", line)
		}
	}
}
