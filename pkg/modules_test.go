package pkg_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/mod/modfile"
)

// apiModules are the modules of the API types, with their direct requirements.
var apiModules = map[string][]string{
	"bootstrap/api":    {"k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/cluster-api/api"},
	"controlplane/api": {module + "bootstrap/api", "k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/cluster-api/api"},
}

func readModule(g Gomega, dir string) *modfile.File {
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	g.Expect(err).NotTo(HaveOccurred())
	parsed, err := modfile.Parse(dir, content, nil)
	g.Expect(err).NotTo(HaveOccurred())
	return parsed
}

// goCommand returns the words that the go command prints.
func goCommand(g Gomega, dir string, args ...string) []string {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	g.Expect(err).NotTo(HaveOccurred(), stderr.String())
	return strings.Fields(string(out))
}

func TestAPIModulesHaveFewRequirements(t *testing.T) {
	const effective = `{{with or .Replace .}}{{.Path}}@{{.Version}}{{end}}`
	managers := goCommand(NewWithT(t), "..", "list", "-m", "-f", effective, "all")
	for folder, direct := range apiModules {
		t.Run(folder, func(t *testing.T) {
			g := NewWithT(t)
			parsed := readModule(g, filepath.Join("..", folder))
			var required []string
			for _, r := range parsed.Require {
				if !r.Indirect {
					required = append(required, r.Mod.Path)
				}
				if r.Mod.Path != module+"bootstrap/api" {
					g.Expect(managers).To(ContainElement(r.Mod.String()), "the version must be that of the managers. Run make tidy.")
				}
			}
			g.Expect(required).To(ConsistOf(direct))
			g.Expect(len(parsed.Require)).To(BeNumerically("<", 40), "users of the types get all requirements")
		})
	}
}

// The program of docs/go-types.md, as a user's own module, needs only the requirements of the API modules.
func TestProgramsNeedOnlyTheAPIModules(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../docs/go-types.md")
	g.Expect(err).NotTo(HaveOccurred())
	program := regexp.MustCompile("(?s)```go\n(package main\n.*?)```\n").FindSubmatch(page)
	g.Expect(program).NotTo(BeNil())

	user := &modfile.File{}
	g.Expect(user.AddModuleStmt("example.com/user")).To(Succeed())
	g.Expect(user.AddGoStmt(readModule(g, "../controlplane/api").Go.Version)).To(Succeed())
	allowed := []string{"example.com/user"}
	for folder := range apiModules {
		dir, err := filepath.Abs(filepath.Join("..", folder))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(user.AddReplace(module+folder, "", dir, "")).To(Succeed())
		allowed = append(allowed, module+folder)
	}
	version := ""
	for _, r := range readModule(g, "../controlplane/api").Require {
		allowed = append(allowed, r.Mod.Path)
		if r.Mod.Path == module+"bootstrap/api" {
			version = r.Mod.Version
		}
	}
	for folder := range apiModules {
		g.Expect(user.AddRequire(module+folder, version)).To(Succeed())
	}
	content, err := user.Format()
	g.Expect(err).NotTo(HaveOccurred())
	sums, err := os.ReadFile("../controlplane/api/go.sum")
	g.Expect(err).NotTo(HaveOccurred())
	dir := t.TempDir()
	for name, content := range map[string][]byte{"go.mod": content, "go.sum": sums, "main.go": program[1]} {
		g.Expect(os.WriteFile(filepath.Join(dir, name), content, 0o600)).To(Succeed())
	}

	g.Expect(strings.Join(goCommand(g, dir, "run", "-mod=mod", "."), " ")).To(ContainSubstring(`"distributionVersion":"4.19.3"`))
	for _, used := range goCommand(g, dir, "list", "-mod=mod", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".") {
		g.Expect(allowed).To(ContainElement(used))
	}
}

// unwanted are packages that libraries contain and that no manager needs. Each manager would read them into memory.
var unwanted = map[string]string{
	"k8s.io/apiserver/pkg/server":  "use pkg/diagnostics instead of controller-runtime's or Cluster API's server of metrics",
	"github.com/google/cel-go":     "the API server evaluates expressions",
	"go.opentelemetry.io/otel/sdk": "the managers send no traces",
	"html/template":                "the linker keeps all methods of all types: see TAGS in the Makefile",
}

// tags returns the build tags of the managers.
func tags(g Gomega) string {
	makefile, err := os.ReadFile("../Makefile")
	g.Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(`(?m)^TAGS := (\S+)$`).FindSubmatch(makefile)
	g.Expect(found).NotTo(BeNil())
	return string(found[1])
}

func TestManagersContainNoUnwantedPackages(t *testing.T) {
	g := NewWithT(t)
	for _, contained := range goCommand(g, "..", "list", "-deps", "-tags", tags(g), "./bootstrap", "./controlplane") {
		for prefix, reason := range unwanted {
			g.Expect(contained == prefix || strings.HasPrefix(contained, prefix+"/")).To(BeFalse(), "%s: %s", contained, reason)
		}
	}
}
