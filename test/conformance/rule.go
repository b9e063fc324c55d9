//go:build conformance

package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// level is how binding a rule is.
type level string

const (
	must   level = "MUST"
	should level = "SHOULD"
	may    level = "MAY"
	info   level = "info"
	// invariant rules are no rows of the contracts, but what users of Cluster API rely on.
	invariant level = "invariant"
)

// rule is a row of the contracts.
type rule struct {
	id, title string
	level     level
	// exempt is why it does not apply; empty: it does.
	exempt string
	result string
	notes  []string
}

// book holds the rules of one suite in the order in which they were declared.
type book struct {
	exempt map[string]string

	mu    sync.Mutex
	rules []*rule
}

// rule declares a spec for a rule; one that does not apply gets an entry in the report and no spec.
func (b *book) rule(id, title string, l level, args ...any) {
	r := &rule{id: id, title: title, level: l, exempt: b.exempt[id], result: "not run"}
	b.rules = append(b.rules, r)
	if r.exempt == "" {
		It(r.name(), args...)
	}
}

// without declares a rule that no provider can be tested for here.
func (b *book) without(id, title string, l level, reason string) {
	b.rules = append(b.rules, &rule{id: id, title: title, level: l, exempt: reason})
}

func (r *rule) name() string { return r.id + " " + r.title }

// note adds to the row of the rule that is being tested.
func (b *book) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.find(CurrentSpecReport().LeafNodeText); r != nil {
		r.notes = append(r.notes, fmt.Sprintf(format, args...))
	}
}

func (b *book) find(name string) *rule {
	if i := slices.IndexFunc(b.rules, func(r *rule) bool { return r.name() == name }); i >= 0 {
		return b.rules[i]
	}
	return nil
}

// close takes the results from Ginkgo's report and writes the table.
func (b *book) close(report types.Report, path string) error {
	for _, spec := range report.SpecReports {
		r := b.find(spec.LeafNodeText)
		switch {
		case r == nil:
		case spec.State == types.SpecStatePassed:
			r.result = "pass"
		case spec.Failed():
			r.result = "fail"
			r.notes = append(r.notes, spec.FailureMessage())
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return os.WriteFile(path, []byte(b.table()), 0o644)
}

func (b *book) table() string {
	var out strings.Builder
	counts := map[string]int{}
	for _, r := range b.rules {
		if r.exempt != "" {
			r.result, r.notes = "n/a", []string{r.exempt}
		}
		counts[r.result]++
	}
	out.WriteString("# Conformance to the contracts of Cluster API\n\n")
	fmt.Fprintf(&out, "%d rules: %d pass, %d fail, %d n/a, %d not run.\n\n", len(b.rules), counts["pass"], counts["fail"], counts["n/a"], counts["not run"])
	out.WriteString("| Rule | Level | Result | Note |\n| --- | --- | --- | --- |\n")
	sorted := slices.Clone(b.rules)
	slices.SortStableFunc(sorted, func(a, b *rule) int { return order(a.id) - order(b.id) })
	for _, r := range sorted {
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", r.name(), r.level, r.result, cell(strings.Join(r.notes, "; ")))
	}
	return out.String()
}

// order sorts B1, B2, ..., C1, ..., P1, ..., I1.
func order(id string) int {
	number := 0
	_, _ = fmt.Sscanf(id[1:], "%d", &number)
	return strings.Index("BCPI", id[:1])*1000 + number
}

// noteLength is how much of a note stands in the table; the log has all of it.
const noteLength = 300

func cell(text string) string {
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
	if len(text) > noteLength {
		text = text[:noteLength] + "..."
	}
	return text
}
