package pkg_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// maxMethods is the limit of the methods of one type, maxLines that of the lines of Go of one package. A reader keeps
// both in mind only if they are small: divide what exceeds them by subject, into packages that are named after theirs.
const (
	maxMethods = 40
	maxLines   = 1280
)

// TestSizeOfTypesAndPackages measures the product: this module and the kubectl plugin without tests and generated files.
func TestSizeOfTypesAndPackages(t *testing.T) {
	g := NewWithT(t)
	methods, lines := map[string]int{}, map[string]int{}
	g.Expect(filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != ".." && isForeignFolder(name):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		return measure(name, methods, lines)
	})).To(Succeed())
	g.Expect(len(lines)).To(BeNumerically(">=", 80), "packages that are found")
	for receiver, number := range methods {
		g.Expect(number).To(BeNumerically("<=", maxMethods), "methods of %s", receiver)
	}
	for dir, number := range lines {
		g.Expect(number).To(BeNumerically("<=", maxLines), "lines of package %s", dir)
	}
}

// isForeignFolder returns whether a folder is a module outside the measured product, or no part of the sources.
func isForeignFolder(name string) bool {
	_, err := os.Stat(filepath.Join(name, "go.mod"))
	return err == nil && name != filepath.Join("..", plugin) || strings.ContainsAny(filepath.Base(name)[:1], "._")
}

// measure adds the lines of a file to those of its package, and its methods to those of their receivers.
func measure(name string, methods, lines map[string]int) error {
	source, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return err
	}
	dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(name)), "../")
	lines[dir] += bytes.Count(source, []byte("\n"))
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv != nil {
			methods[dir+"."+receiverName(function.Recv.List[0].Type)]++
		}
	}
	return nil
}

// receiverName returns the name of the type of a receiver, without pointer and type parameters.
func receiverName(expression ast.Expr) string {
	switch expression := expression.(type) {
	case *ast.StarExpr:
		return receiverName(expression.X)
	case *ast.IndexExpr:
		return receiverName(expression.X)
	case *ast.IndexListExpr:
		return receiverName(expression.X)
	case *ast.Ident:
		return expression.Name
	}
	return ""
}
