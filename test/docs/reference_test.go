package docs_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Links to fields are stable: their anchors are the paths of the fields, and do not depend on headings.
func TestEveryFieldHasItsAnchorInTheReference(t *testing.T) {
	g := NewWithT(t)
	known := anchors(t)["docs/reference.md"]
	files, err := filepath.Glob(filepath.Join(root, "config", "*", "crd", "bases", "*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveLen(4))
	var wanted []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		var crd apiextensionsv1.CustomResourceDefinition
		g.Expect(yaml.Unmarshal(content, &crd)).To(Succeed())
		for _, part := range []string{"spec", "status"} {
			if schema, has := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[part]; has {
				path := strings.ToLower(crd.Spec.Names.Kind) + "." + part
				wanted = append(wanted, path)
				wanted = append(wanted, fieldsOf(path, schema, known)...)
			}
		}
	}
	for _, anchor := range wanted {
		g.Expect(known).To(ContainElement(anchor))
	}
	g.Expect(len(wanted)).To(BeNumerically(">", 180))
}

// fieldsOf returns the paths of the fields below a path, unless another page or another path describes all of them.
func fieldsOf(path string, schema apiextensionsv1.JSONSchemaProps, known []string) []string {
	if schema.Items != nil {
		schema = *schema.Items.Schema
	}
	names := slices.Sorted(maps.Keys(schema.Properties))
	fields := make([]string, 0, len(names))
	for _, name := range names {
		fields = append(fields, path+"."+name)
	}
	if !slices.ContainsFunc(fields, func(field string) bool { return slices.Contains(known, field) }) {
		return nil
	}
	for _, name := range names {
		fields = append(fields, fieldsOf(path+"."+name, schema.Properties[name], known)...)
	}
	return fields
}
