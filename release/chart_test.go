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

// unpack returns the files of a chart.
func unpack(t *testing.T, chart string) map[string][]byte {
	t.Helper()
	return unpackFolder(t, chart, chartName)
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
