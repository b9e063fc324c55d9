package results

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
)

func TestWhyWhatFailedIsToldOnce(t *testing.T) {
	spec := func(text string, state types.SpecState, message string) types.SpecReport {
		return types.SpecReport{LeafNodeText: text, State: state, RunTime: 3 * time.Second, Failure: types.Failure{Message: message}}
	}
	blamed := spec("fails, too", types.SpecStateFailed, "one\n\ntwo\n")
	blamed.ReportEntries = types.ReportEntries{
		{Name: "something", Value: types.WrapEntryValue("else")}, {Name: Evidence, Value: types.WrapEntryValue("capm3 does not run\n")},
	}
	var told bytes.Buffer
	TellFailures(&told, types.Report{SpecReports: types.SpecReports{
		spec("passes", types.SpecStatePassed, "nothing"), spec("fails", types.SpecStateFailed, "a reason"),
		spec("takes too long", types.SpecStateTimedout, strings.Repeat("x", 9999)),
		spec("is left out", types.SpecStateSkipped, "needs more"), blamed,
	}})
	g := NewWithT(t)
	g.Expect(told.String()).To(And(ContainSubstring("FAILED fails after 3 s"), ContainSubstring("a reason"),
		ContainSubstring("FAILED takes too long")))
	g.Expect(told.String()).To(ContainSubstring("FAILED fails, too after 3 s, at :0\n  one\n  two\n  capm3 does not run\n"),
		"each line of it is indented")
	g.Expect(told.String()).NotTo(Or(ContainSubstring("passes"), ContainSubstring("left out")))
	g.Expect(told.Len()).To(BeNumerically("<", 2000))
}
