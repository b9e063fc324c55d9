package pkg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
)

// phaseParameters and phaseResults are the signature of a phase of a reconciliation.
var phaseParameters, phaseResults = []string{"context.Context", "*scope.Scope"}, []string{"bool", "error"}

// TestPhasesAreUsed reports a phase that no list of phases has. The linter reports only unexported methods that are
// not used, and most phases are exported methods of a step.
func TestPhasesAreUsed(t *testing.T) {
	for provider, fewest := range map[string]int{"bootstrap": 5, "controlplane": 25} {
		t.Run(provider, func(t *testing.T) {
			g := NewWithT(t)
			phases, used := map[string]string{}, sets.New[string]()
			g.Expect(filepath.WalkDir(filepath.Join("..", provider, "internal"), func(name string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
					return err
				}
				file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
				if err != nil {
					return err
				}
				inspectPhases(file, filepath.Dir(name), phases, used)
				return nil
			})).To(Succeed())
			g.Expect(len(phases)).To(BeNumerically(">=", fewest), "phases that are found")
			for phase, where := range phases {
				g.Expect(used.Has(phase)).To(BeTrue(), "%s in %s is in no list of phases", phase, where)
			}
		})
	}
}

// inspectPhases adds the exported phases that a file declares, and the names of all methods and fields that it uses. A
// selector of an imported package is neither.
func inspectPhases(file *ast.File, dir string, phases map[string]string, used sets.Set[string]) {
	imported := sets.New[string]()
	for _, spec := range file.Imports {
		imported.Insert(path.Base(strings.Trim(spec.Path.Value, `"`)))
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.SelectorExpr:
			if of, simple := node.X.(*ast.Ident); !simple || !imported.Has(of.Name) {
				used.Insert(node.Sel.Name)
			}
		case *ast.FuncDecl:
			if node.Recv != nil && node.Name.IsExported() &&
				hasTypes(node.Type.Params, phaseParameters) && hasTypes(node.Type.Results, phaseResults) {
				phases[node.Name.Name] = dir
			}
		}
		return true
	})
}

// hasTypes returns whether the types of parameters or results are the given ones.
func hasTypes(fields *ast.FieldList, want []string) bool {
	var found []string
	if fields != nil {
		for _, field := range fields.List {
			for range max(1, len(field.Names)) {
				found = append(found, types.ExprString(field.Type))
			}
		}
	}
	return strings.Join(found, " ") == strings.Join(want, " ")
}
