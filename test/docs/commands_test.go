package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/docs"
)

func TestCommandsOfMakeAndGoNameWhatExists(t *testing.T) {
	found := 0
	for _, d := range read(t) {
		for _, block := range d.Blocks("console") {
			for _, command := range docs.Commands(block.Text) {
				if !docs.Built(command) {
					continue
				}
				found++
				if err := docs.Check(root, command); err != nil {
					t.Errorf("%s:%d: %s: %v", d.Path, block.Line, command, err)
				}
			}
		}
	}
	NewWithT(t).Expect(found).To(BeNumerically(">", 15))
}

// waited matches a command that waits for a condition of our kinds.
var waited = regexp.MustCompile(`wait openshiftassisted.*--for=condition=(\w+)`)

// kubectl does not report that a condition can never exist.
func TestConditionsThatCommandsWaitForExist(t *testing.T) {
	found := 0
	for _, d := range read(t) {
		for _, block := range d.Blocks("console") {
			for _, match := range waited.FindAllStringSubmatch(block.Text, -1) {
				found++
				NewWithT(t).Expect(file(t, "docs/conditions.md")).To(ContainSubstring("\n| `"+match[1]+"` |"), "%s:%d waits for %s",
					d.Path, block.Line, match[1])
			}
		}
	}
	NewWithT(t).Expect(found).To(BeNumerically(">", 5))
}

func TestRemarksOnCommandsAreTrue(t *testing.T) {
	used := map[string]bool{}
	for _, d := range read(t) {
		for _, block := range d.Blocks("console") {
			if _, err := docs.Excused(root, block.Remark, block.Text); err != nil {
				t.Errorf("%s:%d: the comment is <!-- %s -->: %v", d.Path, block.Line, block.Remark, err)
			}
			used[strings.TrimPrefix(block.Remark, "needs ")] = true
		}
	}
	for need := range docs.Lacking {
		NewWithT(t).Expect(used).To(HaveKey(need), "no document needs it any more: remove it from Lacking")
	}
}

// openShiftCommand matches the kubectl of OpenShift at the begin of a command.
var openShiftCommand = regexp.MustCompile(`(?m)(^|\| )oc `)

// A test runs a named block from one document. It proves the others if they have the same commands.
func TestBlocksOfOneNameAreEqual(t *testing.T) {
	g, first := NewWithT(t), map[string]string{}
	compared := 0
	for _, d := range read(t) {
		for _, block := range d.Blocks("console") {
			name := block.Name()
			if name == "" {
				continue
			}
			text := openShiftCommand.ReplaceAllString(block.Text, "${1}kubectl ")
			if first[name] == "" {
				first[name] = text
				continue
			}
			compared++
			g.Expect(text).To(Equal(first[name]), "%s:%d: the block that is run as %s", d.Path, block.Line, name)
		}
	}
	g.Expect(compared).To(BeNumerically(">", 5))
}

// languages are the permitted languages of code blocks: no test runs commands in a block of another language.
var languages = []string{"console", "text", "yaml", "go", "mermaid"}

func TestNoCommandHidesInABlockOfAnotherLanguage(t *testing.T) {
	for _, d := range read(t) {
		for _, block := range d.AllBlocks() {
			if !slices.Contains(languages, block.Language) {
				t.Errorf("%s:%d: the block is of the language %q: commands are console, what they print is text", d.Path, block.Line, block.Language)
			}
		}
	}
}

func TestCommandsOfABlock(t *testing.T) {
	g := NewWithT(t)
	g.Expect(docs.Commands("oc get nodes\n\nclusterctl generate \\\n  --from x\n" +
		"oc apply -f - <<'EOF'\na: b\n\nEOF\noc get pods\n")).To(Equal([]string{
		"oc get nodes", "clusterctl generate \\\n  --from x", "oc apply -f - <<'EOF'\na: b\n\nEOF", "oc get pods",
	}))
}

func TestMissingNamesAreReported(t *testing.T) {
	const inTests = "go -C test "
	for command, wrong := range map[string]string{
		"make nothing":                       "the Makefile has no target nothing",
		"make demo NOTHING=1":                "the Makefile knows no NOTHING",
		"make scale SCALE='-nothing=1'":      "test/measure/scale has no flag -nothing",
		"make chaos CHAOS='-absent=1'":       "test/chaos has no flag -absent",
		"make bench BENCH='-nothing=1'":      "test/measure/bench has no flag -nothing",
		"go -C test run ./nothing":           "there is no package ../../test/nothing",
		"go -C test run ./chaos -absent=1":   "./chaos has no flag -absent",
		inTests + "test ./docs -run TestAbs": "./docs has no TestAbs",
		"go test ./test/docs":                "./test/docs is in the module test: use go -C test",
	} {
		NewWithT(t).Expect(docs.Check(root, command)).To(MatchError(wrong), command)
	}
	for _, right := range []string{
		"make demo KEEP=1 SAMPLE=ha", "make scale CLUSTERS=20 SCALE='-foreign=1'", "make bench BENCH='-margin=1.5 -samples=0'",
		inTests + "test ./docs -run TestMissingNamesAreReported", "go test ./pkg/kube",
	} {
		NewWithT(t).Expect(docs.Check(root, right)).To(Succeed(), right)
	}
	for remark, wrong := range map[string]string{
		"run by TestAbsent in test/clusterctl":                         "test/clusterctl has no TestAbsent",
		"run by TestUserNeedsOnlyRelease in test/nothing":              "there is no package ../../test/nothing",
		"run by TestUserNeedsOnlyRelease in test/clusterctl":           "test/clusterctl runs no clusterctl with --absent",
		"run as absent by TestUserNeedsOnlyRelease in test/clusterctl": `test/clusterctl runs no block "absent"`,
	} {
		_, err := docs.Excused(root, remark, "clusterctl describe --absent x\n")
		NewWithT(t).Expect(err).To(MatchError(wrong), remark)
	}
	_, err := docs.Excused(root, "run by TestUserNeedsOnlyRelease in test/clusterctl", "kubectl get nodes\n")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no command of clusterctl")))
	NewWithT(t).Expect(docs.Excused(root, "a remark about something else", "")).To(BeFalse())
	NewWithT(t).Expect(docs.Excused(root, "needs Pods", "")).To(BeTrue())
	_, err = docs.Excused(root, "needs a good night's sleep", "")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("keeps no command from being run")))
}
