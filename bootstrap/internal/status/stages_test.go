package status

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

// TestEveryReasonIsDeferrableOrUrgent keeps the table complete: a new reason is decided on, and a new condition is reported in its order.
func TestEveryReasonIsDeferrableOrUrgent(t *testing.T) {
	g := NewWithT(t)
	var conditions []string
	listed := map[string]int{}
	for _, stage := range slices.Concat(stages, otherConditions) {
		conditions = append(conditions, stage.condition)
		for _, reason := range slices.Concat(stage.deferrable, stage.urgent) {
			listed[reason]++
		}
	}
	found := 0
	for name, value := range constants(t, "../../api/v1beta1/conditions.go") {
		switch {
		case strings.HasSuffix(name, "Condition"):
			g.Expect(conditions).To(ContainElement(value), "%s is a condition of the table", name)
		case strings.HasSuffix(name, "Reason"):
			found++
			g.Expect(listed).To(HaveKeyWithValue(value, 1), "%s is in one list of the table: it is deferrable or urgent", name)
		}
	}
	g.Expect(found).NotTo(BeZero(), "there are reasons")
}

// The kubectl plugin reads the stages from the API types, which cannot depend on this table.
func TestStagesAreThoseOfTheAPI(t *testing.T) {
	var conditions []string
	for _, stage := range stages {
		conditions = append(conditions, stage.condition)
	}
	NewWithT(t).Expect(bootstrapv1.HostStages()).To(Equal(conditions), "in their order")
}

func TestStageIsPassedWithAReasonOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	for _, stage := range stages {
		g.Expect(slices.Concat(stage.deferrable, stage.urgent)).To(ContainElement(stage.passed), stage.condition)
	}
	g.Expect(PassedReason("Elsewhere")).To(BeEmpty(), "no stage is passed with the reason of an unknown condition")
	g.Expect(IsDeferrable("Forgotten")).To(BeFalse(), "an unknown reason is urgent")
}

// constants returns the constants of a Go file with their values. One that is another package's constant has that one's
// name without the ending as its value, as Cluster API's have.
func constants(t *testing.T, path string) map[string]string {
	t.Helper()
	g := NewWithT(t)
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	g.Expect(err).NotTo(HaveOccurred())
	values := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		switch expression := spec.Values[0].(type) {
		case *ast.BasicLit:
			values[spec.Names[0].Name], err = strconv.Unquote(expression.Value)
		case *ast.SelectorExpr:
			values[spec.Names[0].Name] = strings.TrimSuffix(expression.Sel.Name, "Reason")
		}
		g.Expect(err).NotTo(HaveOccurred())
		return true
	})
	return values
}
