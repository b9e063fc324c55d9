package config_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/findings"
)

// emitters are the methods that queue Events. The first argument is the type of the Event, the second one its reason.
var emitters = sets.New("Event", "StatusEvent")

var eventRow = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| (Normal|Warning) \\|")

// Users search the documents for reasons, which are stable.
func TestEveryEventIsDocumented(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../docs/events.md")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(
		ContainSubstring("| `"+findings.ProblemEndedReason+"` | Normal |"), "the reasons of problems are those of conditions",
	)
	for kind, provider := range map[string]string{
		"OpenshiftAssistedControlPlane": "controlplane", "OpenshiftAssistedConfig": "bootstrap", "MachineDeployment": "controlplane",
	} {
		_, chapter, found := strings.Cut(string(content), "\n## "+kind+"\n")
		g.Expect(found).To(BeTrue(), kind)
		chapter, _, _ = strings.Cut(chapter, "\n## ")
		documented := map[string]string{}
		for _, row := range eventRow.FindAllStringSubmatch(chapter, -1) {
			documented[row[1]] = row[2]
		}
		g.Expect(documented).To(Equal(emitted(t, provider, kind == "MachineDeployment")), kind)
	}
}

// ofMachineDeployments is the folder with the Events about MachineDeployments. All other Events are about the own kind.
const ofMachineDeployments = "/internal/autoscaling/"

// emitted returns the types of the Events of a provider, by reason: of its own object, or of MachineDeployments.
func emitted(t *testing.T, provider string, machineDeployments bool) map[string]string {
	t.Helper()
	g := NewWithT(t)
	constants := reasonsOf(t, "../../"+provider+"/api/v1beta1/conditions.go")
	found := map[string]string{}
	for _, file := range goFiles(t, "../../"+provider+"/internal") {
		if strings.HasSuffix(file, "_test.go") || strings.Contains(file, ofMachineDeployments) != machineDeployments {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		g.Expect(err).NotTo(HaveOccurred())
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			method, is := call.Fun.(*ast.SelectorExpr)
			if !is {
				return true
			}
			if !emitters.Has(method.Sel.Name) || len(call.Args) < 2 {
				return true
			}
			eventType, is := call.Args[0].(*ast.SelectorExpr)
			g.Expect(is).To(BeTrue(), "%s: the type of an Event is no constant", file)
			kind, is := strings.CutPrefix(eventType.Sel.Name, "EventType")
			g.Expect(is).To(BeTrue(), "%s: the type of an Event is no constant", file)
			found[reasonIn(t, constants, call.Args[1])] = kind
			return true
		})
	}
	return found
}

// reasonIn returns the reason for an argument, which is a literal or a constant.
func reasonIn(t *testing.T, constants map[string]string, argument ast.Expr) string {
	t.Helper()
	switch argument := argument.(type) {
	case *ast.BasicLit:
		reason, err := strconv.Unquote(argument.Value)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return reason
	case *ast.SelectorExpr:
		NewWithT(t).Expect(constants).To(HaveKey(argument.Sel.Name))
		return constants[argument.Sel.Name]
	}
	t.Fatalf("an Event whose reason is neither written down nor a constant: %T", argument)
	return ""
}
