package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
)

// level is the obligation of a rule.
type level string

const (
	must   level = "MUST"
	should level = "SHOULD"
	may    level = "MAY"
	info   level = "info"
	// invariant rules are not in the contracts, but users of Cluster API rely on them.
	invariant level = "invariant"
)

// rule is a row of the contracts.
type rule struct {
	id, title string
	level     level
	// exempt is the reason if the rule does not apply.
	exempt string
	result string
	notes  []string
}

// The results of rules.
const (
	passed        = "pass"
	failed        = "fail"
	notApplicable = "n/a"
	notRun        = "not run"
)

// book holds the rules of one suite in the order in which they were declared.
type book struct {
	exempt map[string]string
	// exemption is the reason if the rules that are declared next do not apply.
	exemption string

	mu    sync.Mutex
	rules []*rule

	// played are the rules of a suite that Ginkgo does not run, see TestEveryRuleNoticesABrokenProvider. prepare
	// is the preparation of the rules that are declared next. Nil: Ginkgo runs the suite.
	played  map[string]playedRule
	prepare func(SpecContext)
}

// playedRule is the check of a rule with its preparation.
type playedRule struct{ prepare, check func(SpecContext) }

// rule declares a spec for a rule. A rule that does not apply gets a row in the report and no spec.
func (b *book) rule(id, title string, l level, args ...any) {
	r := &rule{id: id, title: title, level: l, exempt: cmp.Or(b.exempt[id], b.exemption), result: notRun}
	b.rules = append(b.rules, r)
	switch {
	case b.played != nil:
		b.play(id, args[0])
	case r.exempt == "":
		It(r.name(), args...)
	}
}

// play stores the check of a rule.
func (b *book) play(id string, body any) {
	check, ok := body.(func(SpecContext))
	if !ok {
		check = func(SpecContext) { body.(func())() }
	}
	b.played[id] = playedRule{b.prepare, check}
}

// before prepares all rules of a section, once. A failure fails the rules of this section only, unlike in a
// BeforeAll.
func (b *book) before(prepare func(SpecContext), timeout time.Duration) {
	if b.played != nil {
		b.prepare = prepare
		return
	}
	var begun, done bool
	BeforeEach(func(ctx SpecContext) {
		if !begun {
			begun = true
			prepare(ctx)
			done = true
		}
		Expect(done).To(BeTrue(), "the preparation of these rules failed")
	}, NodeTimeout(timeout))
}

// after does something once all rules of a section have run.
func (b *book) after(body any) {
	if b.played == nil {
		AfterAll(body)
	}
}

// exclude declares a rule that is not tested, with the reason.
func (b *book) exclude(id, title string, l level, reason string) {
	b.rules = append(b.rules, &rule{id: id, title: title, level: l, exempt: reason})
}

func (r *rule) name() string { return r.id + " " + r.title }

// addNote adds a note to the row of the current rule.
func (b *book) addNote(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.find(CurrentSpecReport().LeafNodeText); r != nil {
		r.notes = append(r.notes, fmt.Sprintf(format, args...))
	}
}

// skip ends the spec of a rule that turns out not to apply.
func (b *book) skip(reason string) {
	if r := b.find(CurrentSpecReport().LeafNodeText); r != nil {
		r.exempt = reason
	}
	Skip(reason)
}

// expectDone expects that a hub or a cluster has done an operation. A rule does not apply if the hub does not have the
// operation.
func (b *book) expectDone(err error, explanation ...any) {
	GinkgoHelper()
	if errors.Is(err, errors.ErrUnsupported) {
		b.skip(err.Error())
	}
	Expect(err).NotTo(HaveOccurred(), explanation...)
}

func (b *book) find(name string) *rule {
	if i := slices.IndexFunc(b.rules, func(r *rule) bool { return r.name() == name }); i >= 0 {
		return b.rules[i]
	}
	return nil
}

// lastRows are the numbers of rows in the tables of the contracts, and the number of invariants.
var lastRows = map[string]int{"B": 26, "C": 24, "P": 39, "I": 15}

// complete checks that every row of the contracts has exactly one rule.
func (b *book) complete() error {
	times := map[string]int{}
	for prefix, last := range lastRows {
		for number := range last {
			times[fmt.Sprintf("%s%d", prefix, number+1)] = 0
		}
	}
	var wrong []string
	for _, r := range b.rules {
		_, known := times[r.id]
		if !known {
			wrong = append(wrong, r.id+" is no row of the contracts")
		}
		if times[r.id]++; times[r.id] == 2 {
			wrong = append(wrong, r.id+" comes twice")
		}
	}
	for id, n := range times {
		if n == 0 {
			wrong = append(wrong, id+" is missing")
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return fmt.Errorf("the rules are not those of the contracts: %s", strings.Join(wrong, ", "))
}

// close copies the results from Ginkgo's report and writes the table. It returns an error if a complete run left
// out rules.
func (b *book) close(report types.Report, path string) error {
	for _, spec := range report.SpecReports {
		if r := b.find(spec.LeafNodeText); r != nil {
			r.setResult(spec)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	if err := os.WriteFile(path, []byte(b.table()), 0o644); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	if left := b.withResult(notRun); len(left) > 0 && !isPartial(report) {
		return fmt.Errorf("%d rules were not run: %s", len(left), strings.Join(left, ", "))
	}
	return nil
}

// setResult copies the result of a rule from Ginkgo's report on its spec.
func (r *rule) setResult(spec types.SpecReport) {
	switch {
	case r.exempt != "":
	case spec.State == types.SpecStatePassed:
		r.result = passed
	// Skipped, but not left out: a failure in a step that several rules need, which Ginkgo reports.
	case spec.Failed(), spec.State == types.SpecStateSkipped && spec.FailureMessage() != "":
		r.result = failed
		r.notes = append(r.notes, spec.FailureMessage())
	}
}

// withResult returns the ids of the rules with a result.
func (b *book) withResult(result string) []string {
	var ids []string
	for _, r := range b.rules {
		if r.exempt == "" && r.result == result {
			ids = append(ids, r.id)
		}
	}
	return ids
}

// isPartial reports whether only some specs were selected.
func isPartial(report types.Report) bool {
	c := report.SuiteConfig
	lists := slices.Concat(c.FocusStrings, c.SkipStrings, c.FocusFiles, c.SkipFiles)
	return len(lists) > 0 || c.LabelFilter != "" || c.SemVerFilter != "" || c.DryRun || report.SuiteHasProgrammaticFocus
}

func (b *book) table() string {
	var out strings.Builder
	counts := map[string]int{}
	for _, r := range b.rules {
		if r.exempt != "" {
			r.result, r.notes = notApplicable, []string{r.exempt}
		}
		counts[r.result]++
	}
	out.WriteString("# Conformance to the contracts of Cluster API\n\n")
	fmt.Fprintf(&out, "%d rules: %d pass, %d fail, %d n/a, %d not run.\n\n", len(b.rules), counts[passed], counts[failed],
		counts[notApplicable], counts[notRun])
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

// noteLength is the limit of a note in the table, in bytes; the log has all of it.
const noteLength = 300

func cell(text string) string {
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
	if len(text) > noteLength {
		text = text[:noteLength] + "..."
	}
	return text
}
