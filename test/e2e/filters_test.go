package e2e

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
)

// independent is the label of an Ordered container whose specs may run without the former ones. Each of them leaves the cluster
// as it was.
const independent = "independent"

var (
	makeVariable  = regexp.MustCompile(`(?m)^(\w+) := (.*)$`)
	makeReference = regexp.MustCompile(`\$\((\w+)\)`)
	runOfSpecs    = regexp.MustCompile(`(?m)^.*\$\(MAKE\) e2e .*$`)
	labelsOfRun   = regexp.MustCompile(`LABELS='([^']*)'`)
	focusOfRun    = regexp.MustCompile(`FOCUS='([^']*)'`)
)

// run is a call of make e2e: the filters that a spec has to pass.
type run struct {
	line   string
	labels types.LabelFilter
	focus  *regexp.Regexp
}

func (r *run) selects(spec *types.SpecReport) bool {
	return r.labels(spec.Labels()) && r.focus.MatchString(spec.FullText())
}

// A spec of an Ordered container begins with what the former spec left. Without that spec it fails, or tests another case.
func TestNoRunOfTheMakefileSkipsFormerSpecs(t *testing.T) {
	g := NewWithT(t)
	containers := map[types.CodeLocation][]types.SpecReport{}
	for _, spec := range PreviewSpecs("end to end").SpecReports {
		if spec.IsInOrderedContainer && !slices.Contains(spec.Labels(), independent) {
			outer := spec.ContainerHierarchyLocations[0]
			containers[outer] = append(containers[outer], spec)
		}
	}
	g.Expect(len(containers)).To(BeNumerically(">", 3))
	for _, r := range runsOfMakefile(g) {
		for _, specs := range containers {
			skipped := ""
			for i := range specs {
				switch spec := specs[i].FullText(); {
				case !r.selects(&specs[i]):
					skipped = cmp.Or(skipped, spec)
				case skipped != "":
					t.Errorf("%s\nselects %q without %q", r.line, spec, skipped)
				}
			}
		}
	}
}

// runsOfMakefile returns the runs of specs in the Makefile.
func runsOfMakefile(g *WithT) []run {
	content, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	g.Expect(err).NotTo(HaveOccurred())
	values := map[string]string{}
	for _, match := range makeVariable.FindAllStringSubmatch(string(content), -1) {
		values[match[1]] = match[2]
	}
	var runs []run
	for _, line := range runOfSpecs.FindAllString(string(content), -1) {
		for makeReference.MatchString(line) {
			line = makeReference.ReplaceAllStringFunc(line, func(reference string) string {
				return cmp.Or(values[strings.Trim(reference, "$()")], "make")
			})
		}
		labels, err := types.ParseLabelFilter(only(labelsOfRun, line))
		g.Expect(err).NotTo(HaveOccurred(), line)
		focus, err := regexp.Compile(only(focusOfRun, line))
		g.Expect(err).NotTo(HaveOccurred(), line)
		runs = append(runs, run{strings.TrimSpace(line), labels, focus})
	}
	g.Expect(len(runs)).To(BeNumerically(">", 8))
	return runs
}

// only returns what the group of an expression matches in a line; "" if it does not match.
func only(expression *regexp.Regexp, line string) string {
	if match := expression.FindStringSubmatch(line); match != nil {
		return match[1]
	}
	return ""
}
