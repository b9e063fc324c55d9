package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// admission is one request to the API server: base with change laid over it. With before, which is laid over base likewise,
// it is an update of that object. It is accepted, unless refused says which message the user gets.
type admission struct {
	change  string
	before  string
	refused string
}

func checkAdmissions(t *testing.T, base string, cases map[string]admission) {
	t.Helper()
	all := mustLoadSchemas(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			wanted := merge(object(t, base), object(t, c.change))
			var old map[string]any
			if c.before != "" {
				old = merge(object(t, base), object(t, c.before))
				g.Expect(all.admit(t.Context(), old, nil)).To(Succeed(), "the object before the change")
			}
			err := all.admit(t.Context(), wanted, old)
			if c.refused == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(c.refused)))
		})
	}
}

// Every CEL rule of our CRDs has a case above that it refuses.
func TestEveryRuleHasACase(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob("admission_*_test.go")
	g.Expect(err).NotTo(HaveOccurred())
	var cases strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		cases.Write(content)
	}
	for _, crd := range ourDefinitions(t) {
		for _, version := range crd.Spec.Versions {
			for _, message := range ruleMessages(version.Schema.OpenAPIV3Schema) {
				start := message[:min(len(message), 28)]
				g.Expect(strings.Contains(cases.String(), start)).To(BeTrue(), "%s: a case is refused with %q", crd.Spec.Names.Kind, message)
			}
		}
	}
}

// ruleMessages returns the messages of the CEL rules in our part of a schema.
func ruleMessages(props *apiextensionsv1.JSONSchemaProps) []string {
	var messages []string
	for _, rule := range props.XValidations {
		messages = append(messages, rule.Message)
	}
	for name, below := range props.Properties {
		if !foreignType("."+name, below) {
			messages = append(messages, ruleMessages(&below)...)
		}
	}
	if props.Items != nil {
		messages = append(messages, ruleMessages(props.Items.Schema)...)
	}
	return messages
}
