package results

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestQuantilesAreMeasuredTimes(t *testing.T) {
	times := func(milliseconds ...int) []time.Duration {
		var all []time.Duration
		for _, ms := range milliseconds {
			all = append(all, time.Duration(ms)*time.Millisecond)
		}
		return all
	}
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = 100 - i
	}
	for name, test := range map[string]struct {
		of   []time.Duration
		want Quantiles
	}{
		"none":              {want: Quantiles{}},
		"one":               {times(7), Quantiles{1, 7, 7, 7}},
		"an odd number":     {times(30, 10, 20), Quantiles{3, 20, 30, 30}},
		"an even number":    {times(40, 10, 20, 30), Quantiles{4, 20, 40, 40}},
		"one of a hundred":  {times(hundred...), Quantiles{100, 50, 99, 100}},
		"a hundred and one": {times(slices.Concat(hundred, []int{1000})...), Quantiles{101, 51, 100, 1000}},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(QuantilesOf(test.of)).To(Equal(test.want)) })
	}
}

func TestMissedTargets(t *testing.T) {
	for name, test := range map[string]struct {
		found, limit, margin float64
		missed               bool
	}{
		"at the limit":                   {10, 10, 1, false},
		"beyond":                         {10.1, 10, 1, true},
		"beyond, within the margin":      {12, 10, 1.3, false},
		"beyond the margin":              {14, 10, 1.3, true},
		"a limit of zero, with a margin": {1, 0, 1.3, true},
		"no number":                      {math.NaN(), 10, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var targets Targets
			targets.Add("other", 0, 1, test.margin)
			targets.Add("figure", test.found, test.limit, test.margin)
			g.Expect(targets.Missed()).To(Equal(test.missed))
			var out bytes.Buffer
			table := NewTable(&out)
			targets.Print(table)
			g.Expect(table.Flush()).To(Succeed())
			want := Not(ContainSubstring("MISSED"))
			if test.missed {
				want = MatchRegexp(`figure .*MISSED`)
			}
			g.Expect(out.String()).To(want)
		})
	}
}

func TestReactionLimit(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ReactionLimit(200, 1)).To(Equal(400.0))
	g.Expect(ReactionLimit(200, 2)).To(Equal(800.0), "two successive writes")
	g.Expect(ReactionLimit(10, 2)).To(Equal(250.0), "with idle processors")
}

type fakeReport struct{ Targets Targets }

func (r fakeReport) Print(t *Table)  { r.Targets.Print(t) }
func (r fakeReport) Judged() Targets { return r.Targets }

func TestReportWithMissedTargetIsPublishedWithError(t *testing.T) {
	g := NewWithT(t)
	var r fakeReport
	r.Targets.Add("memory", 1, 1, 1)
	path := filepath.Join(t.TempDir(), "below", "results.json")
	var out bytes.Buffer
	g.Expect(Publish(r, path, &out)).To(Succeed())
	g.Expect(out.String()).To(And(MatchRegexp("memory +1 +1 +ok"), ContainSubstring("written to "+path)))
	r.Targets.Add("requests", 2, 1, 1)
	g.Expect(Publish(r, path, &out)).To(MatchError(ErrMissed))
	g.Expect(os.ReadFile(path)).To(ContainSubstring(`"requests"`))
}
