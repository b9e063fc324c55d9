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

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// sampleRow matches a row of the table of samples: the file, twice, and the name of the test.
var sampleRow = regexp.MustCompile(`(?m)^\| \[([a-z0-9-]+)\.yaml\]\(\.\./config/samples/([a-z0-9-]+)\.yaml\) \| .+ \| \d+ \| (.+) \|$`)

// installedBy are the tables of samples of the end-to-end tests, by their name in docs/samples.md.
var installedBy = map[string]string{"everySample": "Samples", "furtherSamples": "Further samples"}

// An untested sample may be wrong, and users do not find an undocumented sample.
func TestEachSampleIsInstalledAndDocumented(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob("../../config/samples/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	installed := samplesThatAreInstalled(t)
	content, err := os.ReadFile("../../docs/samples.md")
	g.Expect(err).NotTo(HaveOccurred())
	documented := map[string]string{}
	for _, row := range sampleRow.FindAllStringSubmatch(string(content), -1) {
		g.Expect(row[1]).To(Equal(row[2]))
		documented[row[1]] = row[3]
	}
	g.Expect(documented).To(Equal(installed), "the tables of docs/samples.md and test/e2e/samples_test.go")
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	}
	for _, name := range names {
		g.Expect(installed).To(HaveKey(name), "a test installs each file in config/samples")
	}
	g.Expect(installed).To(HaveLen(len(names)))
}

// samplesThatAreInstalled returns the samples in the tables of the end-to-end tests, with their table.
func samplesThatAreInstalled(t *testing.T) map[string]string {
	t.Helper()
	g, installed := NewWithT(t), map[string]string{}
	file, err := parser.ParseFile(token.NewFileSet(), "../e2e/samples_test.go", nil, parser.SkipObjectResolution)
	g.Expect(err).NotTo(HaveOccurred())
	ast.Inspect(file, func(node ast.Node) bool {
		spec, is := node.(*ast.ValueSpec)
		if !is || installedBy[spec.Names[0].Name] == "" {
			return true
		}
		for _, element := range spec.Values[0].(*ast.CompositeLit).Elts {
			name, err := strconv.Unquote(element.(*ast.KeyValueExpr).Key.(*ast.BasicLit).Value)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(installed).NotTo(HaveKey(name), "installed once")
			installed[name] = installedBy[spec.Names[0].Name]
		}
		return false
	})
	return installed
}

// The Applications match docs/operations/argocd.md, and none of them deletes a cluster: only a person does.
func TestApplicationsAreAsDocumented(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../config/argocd/application.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var application struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name, Namespace string
			Annotations     map[string]string
		} `json:"metadata"`
		Spec struct {
			Project             string
			Source, Destination map[string]string
			SyncPolicy          struct {
				Automated   struct{ Prune, SelfHeal bool }
				SyncOptions []string
				Retry       struct {
					Limit   int
					Backoff struct {
						Duration, MaxDuration string
						Factor                int
					}
				}
			}
		} `json:"spec"`
	}
	g.Expect(yaml.UnmarshalStrict(content, &application)).To(Succeed())
	g.Expect(application.APIVersion + " " + application.Kind).To(Equal("argoproj.io/v1alpha1 Application"))
	g.Expect(application.Metadata.Annotations).To(HaveKeyWithValue("argocd.argoproj.io/compare-options", "ServerSideDiff=true"))
	g.Expect(application.Spec.SyncPolicy.SyncOptions).To(ContainElement("ServerSideApply=true"))
	g.Expect(application.Spec.SyncPolicy.Automated.Prune).To(BeFalse())
	for _, option := range []string{"ServerSideApply=true", "ServerSideDiff=true"} {
		documented, err := os.ReadFile("../../docs/operations/argocd.md")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(documented)).To(ContainSubstring(option))
	}
}

// The waves of the sample match the document, and no object precedes an object that it needs.
func TestWavesOfSampleFollowDependencies(t *testing.T) {
	g := NewWithT(t)
	content, err := os.Open("../../config/samples/argocd.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	defer content.Close()
	objects, err := readManifests(content)
	g.Expect(err).NotTo(HaveOccurred())
	for _, object := range objects {
		annotations, _ := object["metadata"].(map[string]any)["annotations"].(map[string]any)
		wanted := "0"
		switch object["kind"] {
		case "Secret":
			wanted = "-2"
		case "BareMetalHost":
			wanted = "-1"
		}
		g.Expect(annotations).To(HaveKeyWithValue("argocd.argoproj.io/sync-wave", wanted), "%s", object["kind"])
	}
}
