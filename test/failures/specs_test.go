package failures

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
)

func TestFailedSpecsAreReported(t *testing.T) {
	spec := func(text string, state types.SpecState, message string) types.SpecReport {
		return types.SpecReport{LeafNodeText: text, State: state, RunTime: 3 * time.Second, Failure: types.Failure{Message: message}}
	}
	explained := spec("fails too", types.SpecStateFailed, "one\n\ntwo\n")
	explained.ReportEntries = types.ReportEntries{
		{Name: "other", Value: types.WrapEntryValue("entry")}, {Name: Evidence, Value: types.WrapEntryValue("capm3 does not run\n")},
	}
	var out bytes.Buffer
	Report(&out, types.Report{SpecReports: types.SpecReports{
		spec("passes", types.SpecStatePassed, "nothing"), spec("fails", types.SpecStateFailed, "a reason"),
		spec("takes too long", types.SpecStateTimedout, strings.Repeat("x", 9999)),
		spec("is skipped", types.SpecStateSkipped, "needs more"), explained,
	}})
	g := NewWithT(t)
	g.Expect(out.String()).To(And(ContainSubstring("FAILED fails after 3 s"), ContainSubstring("a reason"),
		ContainSubstring("FAILED takes too long")))
	g.Expect(out.String()).To(ContainSubstring("FAILED fails too after 3 s, at :0\n  one\n  two\n  capm3 does not run\n"),
		"each line is indented")
	g.Expect(out.String()).NotTo(Or(ContainSubstring("passes"), ContainSubstring("skipped")))
	g.Expect(out.Len()).To(BeNumerically("<", 2000))
}
