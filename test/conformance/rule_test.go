//go:build conformance

package conformance

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheTableHasEveryRuleInOrder(t *testing.T) {
	b := &book{}
	b.without("P2", "second", must, "there is none")
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
