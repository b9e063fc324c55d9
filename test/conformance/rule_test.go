package conformance

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
)

func TestTheTableHasEveryRuleInOrder(t *testing.T) {
	b := &book{}
	b.exclude("P2", "second", must, "there is none")
	b.rules = append(b.rules, &rule{id: "B10", title: "ten", level: should, result: "fail", notes: []string{"a | b\nc"}},
		&rule{id: "B2", title: "two", level: must, result: "pass"})
	NewWithT(t).Expect(b.table()).To(HaveSuffix(`3 rules: 1 pass, 1 fail, 1 n/a, 0 not run.

| Rule | Level | Result | Note |
| --- | --- | --- | --- |
| B2 two | MUST | pass |  |
| B10 ten | SHOULD | fail | a \| b c |
| P2 second | MUST | n/a | there is none |
`))
}

// wholeBook returns a book with a rule for every row of the contracts.
func wholeBook() *book {
	b := &book{}
	for prefix, last := range lastRows {
		for number := range last {
			b.rules = append(b.rules, &rule{id: fmt.Sprintf("%s%d", prefix, number+1), level: must, result: passed})
		}
	}
	return b
}

func TestEveryRowOfTheContractsHasOneRule(t *testing.T) {
	NewWithT(t).Expect(wholeBook().complete()).To(Succeed())
	for name, test := range map[string]struct {
		change func(*book)
		wanted string
	}{
		"a row without rule": {
			func(b *book) { b.rules = slices.DeleteFunc(b.rules, func(r *rule) bool { return r.id == "P39" }) },
			"P39 is missing",
		},
		"a rule that comes twice":    {func(b *book) { b.rules = append(b.rules, &rule{id: "C5", level: must}) }, "C5 comes twice"},
		"an invariant that does too": {func(b *book) { b.rules = append(b.rules, &rule{id: "I1", level: invariant}) }, "I1 comes twice"},
		"a rule without row": {
			func(b *book) { b.rules = append(b.rules, &rule{id: "B27", level: must}) },
			"B27 is no row of the contracts",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := wholeBook()
			test.change(b)
			NewWithT(t).Expect(b.complete()).To(MatchError(HaveSuffix(": " + test.wanted)))
		})
	}
}

func TestResultsOfRulesAreThoseOfGinkgo(t *testing.T) {
	for name, test := range map[string]struct {
		state   types.SpecState
		message string
		wanted  string
	}{
		"passed":              {types.SpecStatePassed, "", passed},
		"failed":              {types.SpecStateFailed, "expected this", failed},
		"timed out":           {types.SpecStateTimedout, "took too long", failed},
		"interrupted":         {types.SpecStateInterrupted, "Interrupted by User", failed},
		"left out by a focus": {types.SpecStateSkipped, "", notRun},
		"BeforeAll failed":    {types.SpecStateSkipped, "Spec skipped because a BeforeAll node failed", failed},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rule{id: "B1", title: "one", result: notRun}
			r.setResult(types.SpecReport{State: test.state, Failure: types.Failure{Message: test.message}})
			NewWithT(t).Expect(r.result).To(Equal(test.wanted))
		})
	}
}

func TestAWholeRunLeavesNothingOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.md")
	b := &book{rules: []*rule{{id: "B1", result: notRun}, {id: "B2", result: passed}, {id: "B3", exempt: "optional", result: notRun}}}
	NewWithT(t).Expect(b.close(types.Report{}, path)).To(MatchError("1 rules were not run: B1"))
	NewWithT(t).Expect(b.close(types.Report{SuiteConfig: types.SuiteConfig{FocusStrings: []string{"B2 "}}}, path)).To(Succeed())
	NewWithT(t).Expect(b.close(types.Report{SuiteConfig: types.SuiteConfig{LabelFilter: "Clusterctl"}}, path)).To(Succeed())
	NewWithT(t).Expect(path).To(BeAnExistingFile())
}
