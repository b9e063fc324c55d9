package failures

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestAllFailuresOfALogAreFound(t *testing.T) {
	g := NewWithT(t)
	log, err := os.Open(filepath.Join("testdata", "failed.log"))
	g.Expect(err).NotTo(HaveOccurred())
	defer log.Close()
	failures, err := In(log)
	g.Expect(err).NotTo(HaveOccurred())
	found := make([]string, 0, len(failures))
	for _, f := range failures {
		found = append(found, f.Suite+", "+f.What+": "+strings.Join(strings.Fields(strings.Join(f.Why, " ")), " "))
	}
	g.Expect(found).To(HaveExactElements(
		"starting, TestDNS: --- FAIL: TestDNS/slow (0.00s) dns_test.go:87: Expected <bool>: false to be true",
		"starting, github.com/example/pkg/kube: pkg/kube/pages_test.go:63:4: undefined: informer",
		"starting, panic: runtime error: index out of range [1] with length 1: goroutine 7 [running]: example.Test(0x1) /x/some_test.go:12 +0x1d",
		"suite-day-one, A host that is not ours is refused after 240 s, at hosts_test.go:80: cluster wrong-bmc/cabled is "+
			"not available: context deadline exceeded Machine cabled-1: Ready=False",
		"suite-day-one, Workers join after 12 s, at daytwo_test.go:12: no Machine has it",
		"conformance, TestManifests: ours_test.go:12: Expected 1 to be 2",
		"suite-chaos, no host is installed twice: host a was again: make chaos SEED=1",
		"suite-of-a-program, suite-of-a-program: the last lines of the killed program signal: killed exit status 1",
	))
}

func TestLastLinesWithoutKnownFailure(t *testing.T) {
	g := NewWithT(t)
	g.Expect(In(strings.NewReader("ok  \tpkg\t0.1s\nbash: line 1: nonsense\nmake[1]: *** [Makefile:7: pure] " +
		"Error 2\nmake: *** [Makefile:9: test] Error 2\n"))).
		To(HaveExactElements(Failure{What: "last lines", Suite: "make", Why: []string{"ok  \tpkg\t0.1s", "bash: line 1: nonsense"}}))
}

func TestPassedTestsAreNoFailures(t *testing.T) {
	g := NewWithT(t)
	g.Expect(In(strings.NewReader("==> suite begins\n=== RUN   TestA\n--- PASS: TestA (0.00s)\n# a title\nok  \tpkg\t0.1s\n"))).To(BeEmpty())
}

func TestSummaryFitsIntoEndOfLog(t *testing.T) {
	for n, limit := range map[int]int{1: 40, 3: 100, 25: 110} {
		var failures []Failure
		for i := range n {
			var why []string
			for line := range 99 {
				why = append(why, fmt.Sprintf("line %d", line), "")
			}
			failures = append(failures, Failure{What: fmt.Sprintf("spec %d", i), Suite: "suite", Why: why})
		}
		var out bytes.Buffer
		Summarize(&out, failures)
		g := NewWithT(t)
		g.Expect(strings.Count(out.String(), "\n")).To(BeNumerically("<=", limit), "lines for %d failures", n)
		for i := range n {
			g.Expect(out.String()).To(ContainSubstring("%d. suite: spec %d\n   line 0\n   line 1\n", i+1, i))
		}
	}
}
