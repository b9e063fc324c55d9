package pkg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

var (
	// destructiveAdvice matches an instruction to delete or unbind an object. "cannot delete ..." and
	// "waiting for assisted-service to delete ..." do not match.
	destructiveAdvice = regexp.MustCompile(`(?i)(^|[:;,.(] |\b(?:or|and|then|else|also|also,|either) )(delete|unbind) [a-z%]`)
	// consequence matches the statement of what is destroyed by that, or that nothing is destroyed.
	consequence = regexp.MustCompile(`(?i)\b(wipe|wipes|wiped|reinstall|reinstalls|reinstalled|lose|loses|lost)\b`)
)

func destroysSilently(message string) bool {
	return destructiveAdvice.MatchString(message) && !consequence.MatchString(message)
}

// TestDestructiveAdviceStatesItsConsequence reads every string of the product code, and every text
// of their policies and alerts. A user who follows a message has to know which servers it wipes. A message
// that is composed of several constants is read as one.
func TestDestructiveAdviceStatesItsConsequence(t *testing.T) {
	g := NewWithT(t)
	read, advising := 0, 0
	var silent []string
	check := func(where, message string) {
		read++
		if destructiveAdvice.MatchString(message) {
			advising++
		}
		if destroysSilently(message) {
			silent = append(silent, where+": "+message)
		}
	}
	for _, root := range []string{"../bootstrap", "../cmd", "../controlplane", "../pkg"} {
		walk(g, root, ".go", func(path string) {
			if !strings.HasSuffix(path, "_test.go") {
				stringsOf(g, path, func(message string) { check(path, message) })
			}
		})
	}
	for _, root := range []string{"../config/bootstrap", "../config/controlplane", "../config/monitoring"} {
		walk(g, root, ".yaml", func(path string) {
			for _, message := range textsOf(g, path) {
				check(path, message)
			}
		})
	}
	g.Expect(silent).To(BeEmpty(), "these messages do not state what is wiped or lost:\n%s", strings.Join(silent, "\n"))
	g.Expect(read).To(BeNumerically(">", 2000), "product code was read")
	g.Expect(advising).To(BeNumerically(">", 20), "messages with such advice were found")
}

func TestDestructiveAdviceIsRecognized(t *testing.T) {
	for message, silent := range map[string]bool{
		"Agent %s is bound to %s: unbind it":                                 true,
		"it cannot register: delete the Machine, so that another is created": true,
		"Fix the boot order, or delete the Machine":                          true,
		"Delete the Machine":                                                 true,
		"if it is left over, delete Node %s":                                 true,
		"Delete the Machine, which wipes its host":                           false,
		"Do not unbind it: its server would be reinstalled":                  false,
		"cannot delete Secret %s":                                            false,
		"waiting for assisted-service to delete InfraEnv %s":                 false,
		"Secret %s is not used. Delete it: what it holds is lost":            false,
		"it is left alone until another client unbinds or deletes it":        false,
		"delete": false,
		"Deleting Machine %s would wipe its host. Fix its boot order and reset": false,
	} {
		NewWithT(t).Expect(destroysSilently(message)).To(Equal(silent), message)
	}
}

// walk calls do for each file below root with the given extension.
func walk(g Gomega, root, extension string, do func(path string)) {
	g.Expect(filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == extension {
			do(path)
		}
		return err
	})).To(Succeed())
}

// stringsOf calls do for each string of a Go file. Strings that are joined by + are read as one, with "%v"
// for each part that is no literal.
func stringsOf(g Gomega, path string, do func(string)) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	g.Expect(err).NotTo(HaveOccurred())
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field: // neither the names nor the tag of a field are texts
			return n.Tag == nil
		case *ast.BinaryExpr:
			if text, literal := folded(n); literal {
				do(text)
				return false
			}
		case *ast.BasicLit:
			if text, literal := folded(n); literal {
				do(text)
			}
		}
		return true
	})
}

// folded joins the parts of an expression, and reports whether one of them is a string literal.
func folded(expression ast.Expr) (text string, literal bool) {
	switch e := expression.(type) {
	case *ast.ParenExpr:
		return folded(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			left, inLeft := folded(e.X)
			right, inRight := folded(e.Y)
			return left + right, inLeft || inRight
		}
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	}
	return "%v", false
}

// textsOf returns all strings of a YAML file.
func textsOf(g Gomega, path string) []string {
	var texts []string
	var collect func(value any)
	collect = func(value any) {
		switch value := value.(type) {
		case string:
			texts = append(texts, value)
		case []any:
			for _, item := range value {
				collect(item)
			}
		case map[string]any:
			for key, item := range value {
				if key != "description" || !strings.Contains(path, "crd") { // descriptions of a CRD are documentation
					collect(item)
				}
			}
		}
	}
	for _, document := range documents(g, path) {
		collect(document)
	}
	return texts
}

func documents(g Gomega, path string) []any {
	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	var parsed []any
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		var value any
		g.Expect(yaml.Unmarshal([]byte(document), &value)).To(Succeed(), path)
		parsed = append(parsed, value)
	}
	return parsed
}
