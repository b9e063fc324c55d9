package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEveryReasonIsUnhurriedOrUrgent keeps the table complete: a new reason is decided on, and a new condition is reported in its order.
func TestEveryReasonIsUnhurriedOrUrgent(t *testing.T) {
	var conditions []string
	listed := map[string]int{}
	for _, stage := range slices.Concat(stages, besides) {
		conditions = append(conditions, stage.condition)
		for _, reason := range slices.Concat(stage.unhurried, stage.urgent) {
			listed[reason]++
		}
	}
	found := 0
	for name, value := range constants(t, "../../api/v1beta1/conditions.go") {
		switch {
		case strings.HasSuffix(name, "Condition"):
			if !slices.Contains(conditions, value) {
				t.Errorf("%s is no condition of the table", name)
			}
		case strings.HasSuffix(name, "Reason"):
			found++
			if listed[value] != 1 {
				t.Errorf("%s is in %d lists of the table: it is to be unhurried or urgent", name, listed[value])
			}
		}
	}
	if found == 0 {
		t.Error("found no reasons")
	}
}

func TestStageIsPassedWithAReasonOfItsOwn(t *testing.T) {
	for _, stage := range stages {
		if !slices.Contains(slices.Concat(stage.unhurried, stage.urgent), stage.passed) {
			t.Errorf("%s: %q", stage.condition, stage.passed)
		}
	}
	if passedReason("Elsewhere") != "" || isUnhurried("Forgotten") {
		t.Error("what nobody decided on is urgent, and is passed by nothing")
	}
}

// constants returns the constants of a Go file with their values. One that is another package's constant has that one's name without the ending as its value,
// as Cluster API's have.
func constants(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		return true
	})
	return values
}
