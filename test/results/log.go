package results

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Failure is one thing that failed in a run of tests.
type Failure struct {
	// What failed: a spec, a test, a rule, a package that does not build, or a target of make.
	What string
	// Suite is the target of make that it is part of.
	Suite string
	// Why are the lines of the output that say so.
	Why []string
}

// What begins to tell of a failure in the output of make test. The lines that belong to it are indented, but for those
// of panics and of compilers.
var (
	// told is what [TellFailures] and chaos write.
	told = regexp.MustCompile(`^(?:` + failed + `|BROKEN: )(.+)`)
	// test is what go test says of a test, broken what it says when it cannot build a package, and panicked what a test
	// says that panics or takes too long.
	test     = regexp.MustCompile(`^--- FAIL: (\S+)`)
	broken   = regexp.MustCompile(`^# (\S+/\S+)(?: \[\S+\])?$`)
	panicked = regexp.MustCompile(`^(panic: .+|fatal error: .+)`)
	// made is what make says of a target, target of one whose command failed, but for another make, which has said so itself.
	made   = regexp.MustCompile(`^make(?:\[\d+\])?: \*\*\* \[[^]]*: (\S+)\] Error \d+$`)
	target = regexp.MustCompile(`^make(?:\[\d+\])?: \*\*\* \[[^]]*: (\S+)\] Error (?:1|[3-9]|\d\d+)$`)
	// ends end what a compiler says, and a panic.
	ends = regexp.MustCompile(`^(FAIL|ok|exit status|make)\b`)
)

// reading is where [FailuresIn] is in a log.
type reading struct {
	failures []Failure
	// suite is how many of the failures are those of suites that have ended, former how many those of the suites before the last one.
	suite, former int
	// open tells that the lines that come may belong to the last failure; loose also those that are not indented.
	open, loose bool
	// before are the lines since what failed last.
	before []string
	// gaveUp tells that make did.
	gaveUp bool
}

// FailuresIn finds what failed in the output of make test, in which each suite is in one piece.
func FailuresIn(log io.Reader) ([]Failure, error) {
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
	for begin, loose := range map[*regexp.Regexp]bool{told: false, broken: true, panicked: true} {
		if match := begin.FindStringSubmatch(line); match != nil && !(r.open && r.loose) {
			r.begin(match[1], loose)
			return
		}
	}
	switch match := test.FindStringSubmatch(line); {
	case match != nil:
		// With -v what a test said stands before this line, unless it is a suite that has said what failed of it.
		said := r.before
		r.begin(match[1], false)
		if i := slices.Index(said, "=== RUN   "+match[1]); i >= 0 {
			r.add(last(said[i+1:])...)
		}
		return
	case target.MatchString(line):
		said := r.before
		if len(r.explained(r.suite)) == 0 {
			r.begin(target.FindStringSubmatch(line)[1], false)
			r.add(last(said)...)
		}
		r.before, r.former, r.suite = nil, r.suite, len(r.failures)
	}
	switch {
	case r.open && (r.loose && !ends.MatchString(line) || !r.loose && strings.HasPrefix(line, " ")):
		r.add(line)
	case made.MatchString(line):
		r.open, r.gaveUp = false, true
		r.name(made.FindStringSubmatch(line)[1])
	case r.open && strings.TrimSpace(line) == "":
	default:
		r.open = false
		r.before = append(r.before, line)
	}
}

// suites is what the names of the outermost targets begin with that have several inner ones alike.
const suites = "suite-"

// name gives the failures of the last suite the name of a target: the first one that is told, or that of a suite, which is told afterwards.
func (r *reading) name(target string) {
	for i := r.former; i < r.suite; i++ {
		if r.failures[i].Suite == "" || strings.HasPrefix(target, suites) {
			r.failures[i].Suite = target
		}
	}
}

// end returns what failed. Where nothing says what, it is what stands last.
func (r *reading) end() []Failure {
	failures := r.explained(0)
	if len(failures) == 0 && r.gaveUp {
		return []Failure{{What: "what stands last", Suite: "make", Why: last(r.before)}}
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

// explained are the failures, from one on, of which anything is said.
func (r *reading) explained(from int) []Failure {
	return slices.DeleteFunc(slices.Clone(r.failures[from:]), func(f Failure) bool { return len(f.Why) == 0 })
}

// last are the last lines, as many as are told.
func last(lines []string) []string { return lines[max(0, len(lines)-mostLines):] }

// mostOfLog is how many lines of a failed run are kept where only its end is.
const mostOfLog = 90

// Summarize writes what failed, and why, in as many lines as are kept of a failed run.
func Summarize(out io.Writer, failures []Failure) {
	_, _ = fmt.Fprintf(out, "\n==> %d failures\n", len(failures))
	most := min(mostLines, max(3, mostOfLog/max(1, len(failures))))
	for i, f := range failures {
		_, _ = fmt.Fprintf(out, "%d. %s: %s\n", i+1, f.Suite, f.What)
		for _, line := range shortened(strings.Join(f.Why, "\n"), most) {
			_, _ = fmt.Fprintf(out, "   %s\n", line)
		}
	}
}
