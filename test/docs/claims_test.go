package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var (
	claimRow = regexp.MustCompile(`(?m)^\| (.+) \| (.+) \|$`)
	quoted   = regexp.MustCompile("`([^`]+)`")
	// testsIn matches the names of tests, and the folder that they are in.
	testsIn = regexp.MustCompile("((?:`\\w+`, )*`\\w+`) in ([a-z/]+)")
	focused = regexp.MustCompile(`\$\(MAKE\) e2e .*FOCUS='([^']+)'`)
)

// A claim whose test was renamed or removed is not tested any more.
func TestEveryClaimNamesTestsThatExist(t *testing.T) {
	claims := 0
	for _, row := range claimRow.FindAllStringSubmatch(file(t, "docs/claims.md"), -1) {
		claim, tests := row[1], row[2]
		if claim == "Claim" || claim == "---" {
			continue
		}
		claims++
		wanted := proofs(tests)
		NewWithT(t).Expect(wanted).NotTo(BeEmpty(), "%s: the row names a test", claim)
		for folder, beginnings := range wanted {
			sources := testSources(t, folder)
			for _, beginning := range beginnings {
				if !strings.Contains(sources, beginning) {
					t.Errorf("docs/claims.md: %s: %s has no %s", claim, folder, beginning)
				}
			}
		}
	}
	NewWithT(t).Expect(claims).To(BeNumerically(">", 30))
}

// A part of FOCUS that matches no spec runs nothing, and nothing fails.
func TestEachFocusOfTheMakefileMatchesSpecs(t *testing.T) {
	g, sources := NewWithT(t), testSources(t, "test/e2e")
	runs := focused.FindAllStringSubmatch(file(t, "Makefile"), -1)
	g.Expect(runs).NotTo(BeEmpty())
	for _, run := range runs {
		for part := range strings.SplitSeq(run[1], "|") {
			g.Expect(sources).To(MatchRegexp(`(Describe|It)\("[^"]*`+regexp.QuoteMeta(part)), "FOCUS='%s'", run[1])
		}
	}
}

// proofs are how the tests begin that a cell names, by their folder: specs after "e2e: ", and what they call in
// parentheses, else test functions.
func proofs(cell string) map[string][]string {
	found := map[string][]string{}
	if specs, is := strings.CutPrefix(cell, "e2e: "); is {
		specs, helpers, _ := strings.Cut(specs, " (")
		for _, name := range quoted.FindAllStringSubmatch(specs, -1) {
			found["test/e2e"] = append(found["test/e2e"], `It("`+name[1])
		}
		for _, name := range quoted.FindAllStringSubmatch(helpers, -1) {
			found["test/e2e"] = append(found["test/e2e"], "func "+name[1]+"(")
		}
		return found
	}
	for _, tests := range testsIn.FindAllStringSubmatch(cell, -1) {
		for _, name := range quoted.FindAllStringSubmatch(tests[1], -1) {
			found[tests[2]] = append(found[tests[2]], "func "+name[1]+"(t *testing.T)")
		}
	}
	return found
}

// testSources are the tests of a folder, one after the other.
func testSources(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(files).NotTo(BeEmpty(), folder)
	var all strings.Builder
	for _, path := range files {
		relative, err := filepath.Rel(root, path)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		all.WriteString(file(t, relative))
	}
	return all.String()
}
