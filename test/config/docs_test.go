package config_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/docs"
	tools "github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
)

// Keys are the titles of chapters of docs/conditions.md, one per kind. Values are the files that define
// conditions and reasons of the kind.
var documented = map[string]string{
	"OpenshiftAssistedConfig":       "../../bootstrap/api/v1beta1/conditions.go",
	"OpenshiftAssistedControlPlane": "../../controlplane/api/v1beta1/conditions.go",
}

// The rows of reasons begin with an anchor.
var conditionRow = regexp.MustCompile("(?m)^\\| (?:<a id=\"[A-Za-z-]+\"></a>)?`([A-Za-z]+)` \\|")

func TestEveryConditionAndReasonIsDocumented(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../docs/conditions.md")
	g.Expect(err).NotTo(HaveOccurred())
	for kind, file := range documented {
		_, chapter, found := strings.Cut(string(content), "\n## "+kind+"\n")
		g.Expect(found).To(BeTrue(), "chapter on %s", kind)
		chapter, _, _ = strings.Cut(chapter, "\n## ")
		tables := strings.SplitN(chapter, "| Reason |", 2)
		g.Expect(tables).To(HaveLen(2), "table of reasons of %s", kind)
		conditions, reasons := constants(t, file)
		g.Expect(rows(tables[0])).To(ConsistOf(append(conditions, "Paused")), "conditions of %s", kind) // Cluster API sets Paused
		g.Expect(rows(tables[1])).To(ConsistOf(reasons), "reasons of %s", kind)
	}
}

var annotationLiteral = regexp.MustCompile(`(?:[a-z0-9-]+\.)+(?:x-k8s|openshift)\.io(?:\.[a-z-]+\.|/[a-z-]+)`)

// foreignAnnotations are labels and annotations of Cluster API that our policies read. Users do not set them
// for our providers.
var foreignAnnotations = []string{"cluster.x-k8s.io/deployment-name", "clusterctl.cluster.x-k8s.io/delete-for-move"}

// Users cannot find an undocumented annotation.
func TestEveryAnnotationIsDocumented(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../docs/annotations.md")
	g.Expect(err).NotTo(HaveOccurred())
	files, err := filepath.Glob("../../*/api/v1beta1/*.go")
	g.Expect(err).NotTo(HaveOccurred())
	policies, err := filepath.Glob("../../config/bootstrap/policy/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(policies).NotTo(BeEmpty())
	found := 0
	for _, file := range append(files, policies...) {
		for _, annotation := range annotations(t, file) {
			if slices.Contains(foreignAnnotations, annotation) {
				continue
			}
			found++
			g.Expect(string(content)).To(ContainSubstring(annotation), file)
		}
	}
	g.Expect(found).To(BeNumerically(">", 15))
	for _, annotation := range []string{
		metal3.HostnameAnnotation, metal3.RoleAnnotation, metal3.InstallerArgsAnnotation,
		metal3.IgnitionAnnotation, metal3.NodeLabelAnnotationPrefix + "<key>", metal3.AgentLabelAnnotationPrefix + "<key>",
	} {
		g.Expect(string(content)).To(ContainSubstring("| `" + annotation + "` |"))
	}
	policy, err := os.ReadFile("../../config/bootstrap/policy/reinstallation.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	consent := regexp.MustCompile(`'([a-z./0-9-]+/reinstall-hosts)'\]\.orValue\(''\) != '([a-z-]+)'`).FindStringSubmatch(string(policy))
	g.Expect(consent).To(HaveLen(3), "the consent that the policy accepts")
	g.Expect(string(content)).To(ContainSubstring("| `" + consent[1] + "` | `" + consent[2] + "`"))
}

// annotations returns the annotations in a file: values of constants, or keys of lookups.
func annotations(t *testing.T, file string) []string {
	t.Helper()
	if filepath.Ext(file) != ".go" {
		content, err := os.ReadFile(file)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return annotationLiteral.FindAllString(string(content), -1)
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var names []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || !strings.Contains(spec.Names[0].Name, "Annotation") {
			return true
		}
		ast.Inspect(spec, func(n ast.Node) bool {
			if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING {
				value, err := strconv.Unquote(literal.Value) // after the prefix, if any
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				names = append(names, value)
			}
			return true
		})
		return false
	})
	return names
}

// Each field of assisted-service is documented as supported or with the reason why not.
func TestEveryFieldOfAssistedServiceIsDocumented(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../docs/ztp.md")
	g.Expect(err).NotTo(HaveOccurred())
	crds := generatedCRDs(t)
	for chapter, name := range map[string]string{
		"AgentClusterInstall": "agentclusterinstalls." + hiveext.Group,
		"InfraEnv":            "infraenvs." + aiv1beta1.GroupVersion.Group, "Agent": "agents." + aiv1beta1.GroupVersion.Group,
	} {
		_, text, found := strings.Cut(string(content), "\n## "+chapter+"\n")
		g.Expect(found).To(BeTrue(), chapter)
		text, _, _ = strings.Cut(text, "\n## ")
		fields := crds[name].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
		g.Expect(len(fields)).To(BeNumerically(">", 10), chapter)
		for name := range fields {
			g.Expect(text).To(MatchRegexp("(?m)^\\|[^|]*`%s`[^|]*\\|", name), chapter)
		}
	}
}

func TestTestedClusterAPIVersionsAreDocumented(t *testing.T) {
	g := NewWithT(t)
	builder, err := tools.NewBuilder(".", io.Discard)
	g.Expect(err).NotTo(HaveOccurred())
	folders, err := filepath.Glob("../tools/cluster-api*")
	g.Expect(err).NotTo(HaveOccurred())
	var versions []string
	for _, folder := range folders {
		version, err := builder.CoreVersion(filepath.Base(folder))
		g.Expect(err).NotTo(HaveOccurred())
		versions = append(versions, version.String())
	}
	slices.Sort(versions)
	last := len(versions) - 1
	content, err := os.ReadFile("../../docs/operations/upgrading.md")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(ContainSubstring("tested with Cluster API %s and %s.", strings.Join(versions[:last], ", "), versions[last]))
}

// TestTestedComponentVersionsAreDocumented compares docs/versions.md with the pinned modules of the components.
func TestTestedComponentVersionsAreDocumented(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../docs/versions.md")
	g.Expect(err).NotTo(HaveOccurred())
	for tool, tested := range map[string]struct{ part, module string }{
		"kubernetes":         {"Kubernetes of the management cluster", "k8s.io/kubernetes"},
		"cluster-api":        {"Cluster API core", "sigs.k8s.io/cluster-api"},
		"cluster-api-1.12":   {"Cluster API core", "sigs.k8s.io/cluster-api"},
		"cluster-api-1.13":   {"Cluster API core", "sigs.k8s.io/cluster-api"},
		"clusterctl":         {"clusterctl", "sigs.k8s.io/cluster-api"},
		"capm3":              {"Metal3 (CAPM3)", "github.com/metal3-io/cluster-api-provider-metal3"},
		"assisted-service":   {"assisted-service", "github.com/openshift/assisted-service"},
		"baremetal-operator": {"Bare Metal Operator", "github.com/metal3-io/baremetal-operator"},
	} {
		g.Expect(string(content)).To(MatchRegexp(`(?m)^\| %s \|.*%s\b.*\|$`, regexp.QuoteMeta(tested.part),
			regexp.QuoteMeta(pinned(t, tool, tested.module))), tool)
	}
}

// TestHubPageInstallsTestedVersions compares the page that builds a hub with the pinned modules of the components.
func TestHubPageInstallsTestedVersions(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../../docs/operations/hub-on-kubernetes.md")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(page)).To(ContainSubstring("baremetal-operator/config/use-irso?ref=" +
		pinned(t, "baremetal-operator", "github.com/metal3-io/baremetal-operator") + "'"))
	revision, err := module.PseudoVersionRev(pinned(t, "assisted-service", "github.com/openshift/assisted-service"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(page)).To(MatchRegexp(`(?m)^commit=` + revision + `[0-9a-f]{28}$`))
}

// pinned returns the version of a module that a folder of test/tools pins.
func pinned(t *testing.T, tool, path string) string {
	t.Helper()
	g := NewWithT(t)
	raw, err := os.ReadFile(filepath.Join("../tools", tool, "go.mod"))
	g.Expect(err).NotTo(HaveOccurred())
	pins, err := modfile.Parse(tool, raw, nil)
	g.Expect(err).NotTo(HaveOccurred())
	i := slices.IndexFunc(pins.Require, func(r *modfile.Require) bool { return r.Mod.Path == path })
	g.Expect(i).To(BeNumerically(">=", 0), "%s is pinned by %s", path, tool)
	return pins.Require[i].Mod.Version
}

func rows(table string) []string {
	var names []string
	for _, row := range conditionRow.FindAllStringSubmatch(table, -1) {
		names = append(names, row[1])
	}
	return names
}

// constants returns the values of the constants ...Condition and ...Reason of a Go file. A constant of another
// package has its name without the suffix as its value, like the constants of Cluster API.
func constants(t *testing.T, path string) (conditions, reasons []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
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

var code = regexp.MustCompile("`[^`\n]*`")

// The API server accepts every complete manifest in the documents.
func TestManifestsInDocumentsAreAccepted(t *testing.T) {
	g, all := NewWithT(t), mustLoadSchemas(t)
	documents, err := docs.Read("../..")
	g.Expect(err).NotTo(HaveOccurred())
	found := 0
	for _, document := range documents {
		for _, block := range document.Blocks("yaml") {
			if !strings.Contains(block.Text, "apiVersion:") || strings.Contains(block.Text, "apiVersion: rbac.") {
				continue // a part of a manifest, or one of Kubernetes itself
			}
			found++
			g.Expect(admitAll(t.Context(), all, []byte(block.Text))).To(Succeed(), "%s:%d: %s", document.Path, block.Line, block.Text)
		}
	}
	g.Expect(found).To(BeNumerically(">", 0))
}

// provenBy matches the tests in the table of docs/assisted-service.md.
var provenBy = regexp.MustCompile(`(?m)^\| .* \| .* \| (.*) \|$`)

func TestTestsNamedInTableOfDependenciesExist(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../docs/assisted-service.md")
	g.Expect(err).NotTo(HaveOccurred())
	sources := testSources(t, ".", "../e2e", "../env/assistedservice", "../journeys",
		"../../bootstrap/internal", "../../controlplane/internal")
	rows := provenBy.FindAllStringSubmatch(string(content), -1)
	g.Expect(len(rows)).To(BeNumerically(">=", 20))
	for _, row := range rows[1:] { // after the titles
		names := proofs(row[1])
		if !strings.Contains(row[1], "---") {
			g.Expect(names).NotTo(BeEmpty(), row[0])
		}
		for _, name := range names {
			g.Expect(strings.Contains(sources, name)).To(BeTrue(), "a test has %s", name)
		}
	}
}

// proofs returns the texts that must occur in the sources for the tests of a cell. Specs follow "e2e: ". Helpers of
// specs stand in parentheses. All other names are test functions.
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

// testSources returns the contents of all tests in folders and below them.
func testSources(t *testing.T, folders ...string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range folders {
		for _, file := range goFiles(t, folder) {
			if strings.HasSuffix(file, "_test.go") {
				content, err := os.ReadFile(file)
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				all.Write(content)
			}
		}
	}
	return all.String()
}

// goFiles returns the Go files in a folder and below it.
func goFiles(t *testing.T, folder string) (files []string) {
	t.Helper()
	NewWithT(t).Expect(filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") {
			files = append(files, path)
		}
		return err
	})).To(Succeed())
	return files
}
