package config_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The title of the chapter of docs/conditions.md for each kind, and the file with its conditions and reasons.
var documented = map[string]string{
	"OpenshiftAssistedConfig":       "../bootstrap/api/v1beta1/conditions.go",
	"OpenshiftAssistedControlPlane": "../controlplane/api/v1beta1/conditions.go",
}

var conditionRow = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|")

func TestEveryConditionAndReasonIsDocumented(t *testing.T) {
	content, err := os.ReadFile("../docs/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind, file := range documented {
		_, chapter, found := strings.Cut(string(content), "\n## "+kind+"\n")
		if !found {
			t.Errorf("no chapter on %s", kind)
			continue
		}
		chapter, _, _ = strings.Cut(chapter, "\n## ")
		tables := strings.SplitN(chapter, "| Reason |", 2)
		if len(tables) != 2 {
			t.Errorf("%s: no table of reasons", kind)
			continue
		}
		conditions, reasons := constants(t, file)
		compare(t, kind+" conditions", append(conditions, "Paused"), rows(tables[0])) // Paused is Cluster API's
		compare(t, kind+" reasons", reasons, rows(tables[1]))
	}
}

func rows(table string) []string {
	var names []string
	for _, row := range conditionRow.FindAllStringSubmatch(table, -1) {
		names = append(names, row[1])
	}
	return names
}

func compare(t *testing.T, what string, wanted, documented []string) {
	t.Helper()
	have := map[string]bool{}
	for _, name := range documented {
		if have[name] {
			t.Errorf("%s: %s is documented twice", what, name)
		}
		have[name] = true
	}
	for _, name := range wanted {
		if !have[name] {
			t.Errorf("%s: %s is not documented", what, name)
		}
		delete(have, name)
	}
	for name := range have {
		t.Errorf("%s: %s is documented but does not exist", what, name)
	}
}

// constants returns the values of the constants ...Condition and ...Reason in a Go file. One that is another package's
// constant has that one's name without the ending as its value, as Cluster API's have.
func constants(t *testing.T, path string) (conditions, reasons []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		var value string
		switch expression := spec.Values[0].(type) {
		case *ast.BasicLit:
			value, _ = strconv.Unquote(expression.Value)
		case *ast.SelectorExpr:
			value = strings.TrimSuffix(strings.TrimSuffix(expression.Sel.Name, "Condition"), "Reason")
		}
		switch name := spec.Names[0].Name; {
		case strings.HasSuffix(name, "Condition"):
			conditions = append(conditions, value)
		case strings.HasSuffix(name, "Reason"):
			reasons = append(reasons, value)
		}
		return true
	})
	return conditions, reasons
}

var (
	// snippet is a block of YAML in a document, without its indentation in a list.
	snippet = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	code    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
)

// Every whole manifest in the documents is one that the API server accepts.
func TestManifestsInDocumentsAreAccepted(t *testing.T) {
	all := mustLoadSchemas(t)
	found := 0
	for path, content := range documents(t) {
		for _, match := range snippet.FindAllSubmatch(content, -1) {
			if text := string(match[1]); !strings.Contains(text, "apiVersion:") || strings.Contains(text, "apiVersion: rbac.") {
				continue // a part of a manifest, or one of Kubernetes itself
			}
			found++
			if err := admitAll(t.Context(), all, match[1]); err != nil {
				t.Errorf("%s: %v\n%s", path, err, match[1])
			}
		}
	}
	if found == 0 {
		t.Error("found no manifest in the documents")
	}
}

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	for path, content := range documents(t) {
		for _, match := range link.FindAllSubmatch(code.ReplaceAll(content, nil), -1) {
			target := filepath.Join(filepath.Dir(path), string(match[1]))
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", path, match[1], err)
			}
		}
	}
}

func documents(t *testing.T) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for _, pattern := range []string{"../README.md", "../CONTRIBUTING.md", "../docs/*.md", "../docs/adr/*.md"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("no documents match %s: %v", pattern, err)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			found[path] = content
		}
	}
	return found
}

// provenBy matches what the table of docs/assisted-service.md names as a proof.
var provenBy = regexp.MustCompile(`(?m)^\| .* \| .* \| (.*) \|$`)

func TestWhatWeRelyOnNamesTestsThatExist(t *testing.T) {
	content, err := os.ReadFile("../docs/assisted-service.md")
	if err != nil {
		t.Fatal(err)
	}
	sources := testSources(t, "../test/e2e", "../test/env/assistedservice", "../test/journeys", "../bootstrap/internal/config")
	rows := provenBy.FindAllStringSubmatch(string(content), -1)
	if len(rows) < 20 {
		t.Fatalf("only %d rows were found", len(rows))
	}
	for _, row := range rows[1:] { // after the titles
		names := proofs(row[1])
		if len(names) == 0 && !strings.Contains(row[1], "---") {
			t.Errorf("no test is named: %s", row[0])
		}
		for _, name := range names {
			if !strings.Contains(sources, name) {
				t.Errorf("no test has %s", name)
			}
		}
	}
}

// proofs returns how the sources begin what a cell names: specs after "e2e: ", helpers of specs in parentheses, test functions else.
func proofs(cell string) (beginnings []string) {
	specs := strings.HasPrefix(cell, "e2e: ")
	tests, helpers, _ := strings.Cut(cell, " (`")
	for _, name := range quoted(tests) {
		if specs {
			beginnings = append(beginnings, `It("`+name)
		} else {
			beginnings = append(beginnings, "func "+name+"(")
		}
	}
	for _, name := range quoted("`" + helpers) {
		beginnings = append(beginnings, "func "+name+"(")
	}
	return beginnings
}

func quoted(text string) (names []string) {
	for _, name := range code.FindAllString(text, -1) {
		names = append(names, strings.Trim(name, "`"))
	}
	return names
}

func testSources(t *testing.T, folders ...string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(content)
		}
	}
	return all.String()
}
