package chart

import (
	"testing"

	. "github.com/onsi/gomega"
	yamlv3 "go.yaml.in/yaml/v3"
)

func TestValueNeedsCommentAndSchema(t *testing.T) {
	g := NewWithT(t)
	document := &yamlv3.Node{}
	g.Expect(yamlv3.Unmarshal([]byte("# First line,\n# second line.\na: 1\nb:\n  # A | B.\n  c: {}\n  d: []\n"), document)).To(Succeed())
	_, err := valuesOf(document.Content[0])
	g.Expect(err).To(MatchError("the value b.d of the chart has no comment"))
	g.Expect(describe("# First line,\n# second line.")).To(Equal("First line, second line."))

	schema := map[string]any{
		"properties":  map[string]any{"a": map[string]any{"$ref": "#/definitions/count"}},
		"definitions": map[string]any{"count": map[string]any{"type": "integer"}},
	}
	g.Expect(typesOf(schema, []string{"a"})).To(Equal("integer"))
	_, err = typesOf(schema, []string{"b", "c"})
	g.Expect(err).To(MatchError("the schema of the chart has no type for the value b.c"))
}
