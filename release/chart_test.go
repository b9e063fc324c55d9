package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/release/chart"
)

// flagsOfChart are the flags that the user cannot set in values.flags: other values set them, or the components
// depend on them.
var flagsOfChart = []string{
	"assisted-service-authorities", "health-addr", "in-place-updates", "namespace", "version", "watch-filter", "webhook-cert-dir",
	"webhook-port",
}

// The schema rejects values.flags with a flag that it does not list.
func TestSchemaOfChartListsFlagsOfManagers(t *testing.T) {
	g := NewWithT(t)
	documented, err := os.ReadFile(filepath.Join(root, "docs", "flags.md"))
	g.Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(filepath.Join(root, "config", "chart", "values.schema.json"))
	g.Expect(err).NotTo(HaveOccurred())
	schema := map[string]any{}
	g.Expect(json.Unmarshal(content, &schema)).To(Succeed())
	for _, p := range providers {
		_, chapter, found := strings.Cut(string(documented), "\n## "+p.folder+"\n")
		g.Expect(found).To(BeTrue())
		chapter, _, _ = strings.Cut(chapter, "\n## ")
		var flags []string
		for _, flag := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+) `).FindAllStringSubmatch(chapter, -1) {
			flags = append(flags, flag[1])
		}
		known, _, err := unstructured.NestedStringSlice(schema, "properties", p.values, "properties", "flags", "propertyNames", "enum")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(known).To(ConsistOf(slices.DeleteFunc(flags, func(flag string) bool { return slices.Contains(flagsOfChart, flag) })), p.folder)
	}
}

// row matches a row in the table of the values.
var row = regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)` \\| ([a-z ]+) \\| `(.+)` \\| (\\S.*) \\|$")

// checkReadme checks that the README of a chart has a row for each value with its default, and no other rows.
func checkReadme(t *testing.T, packed string) {
	t.Helper()
	g := NewWithT(t)
	files := unpack(t, packed)
	readme, defaults := string(files["README.md"]), map[string]any{}
	g.Expect(readme).NotTo(ContainSubstring("<!--"))
	g.Expect(yaml.Unmarshal(files["values.yaml"], &defaults)).To(Succeed())
	var listed []string
	for _, match := range row.FindAllStringSubmatch(readme, -1) {
		listed = append(listed, match[1])
		value, found, err := unstructured.NestedFieldNoCopy(defaults, strings.Split(match[1], ".")...)
		g.Expect(err).NotTo(HaveOccurred(), match[1])
		g.Expect(found).To(BeTrue(), "the chart has no value %s", match[1])
		g.Expect(yaml.Marshal(value)).To(MatchYAML(strings.ReplaceAll(match[3], `\|`, "|")), match[1])
		for _, word := range strings.Fields(match[4]) {
			g.Expect(string(files["values.yaml"])).To(ContainSubstring(word), "the comment of %s", match[1])
		}
	}
	g.Expect(strings.Count(readme, "\n| `")).To(Equal(len(listed)), "each row is complete")
	g.Expect(listed).To(ConsistOf(leaves(defaults, "")))
	g.Expect(readme).To(ContainSubstring("| `openshiftHub` | boolean or null | `null` |"))
	g.Expect(readme).To(ContainSubstring("| `bootstrap.image.tag` | string | `\"v0.1.0\"` |"), "the defaults of this release")
}

// wholeValues are the mappings whose keys users choose.
var wholeValues = regexp.MustCompile(`\.(flags|resources|podAnnotations)$`)

// leaves returns the paths of the values in a mapping.
func leaves(values map[string]any, prefix string) []string {
	var paths []string
	for key, value := range values {
		below, _ := value.(map[string]any)
		if len(below) > 0 && !wholeValues.MatchString(prefix+key) {
			paths = append(paths, leaves(below, prefix+key+".")...)
		} else {
			paths = append(paths, prefix+key)
		}
	}
	return paths
}

// unpack returns the files of a chart.
func unpack(t *testing.T, packed string) map[string][]byte {
	t.Helper()
	return unpackFolder(t, packed, chart.Name)
}

// unpackFolder returns the files of an archive with one folder.
func unpackFolder(t *testing.T, path, folder string) map[string][]byte {
	t.Helper()
	g := NewWithT(t)
	packed, err := os.Open(path)
	g.Expect(err).NotTo(HaveOccurred())
	defer packed.Close()
	archive, err := gzip.NewReader(packed)
	g.Expect(err).NotTo(HaveOccurred())
	files := map[string][]byte{}
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		g.Expect(err).NotTo(HaveOccurred())
		file, found := strings.CutPrefix(header.Name, folder+"/")
		g.Expect(found).To(BeTrue(), "all files are in folder %s, as Helm requires of a chart: %s", folder, header.Name)
		files[file], err = io.ReadAll(reader)
		g.Expect(err).NotTo(HaveOccurred())
	}
}
