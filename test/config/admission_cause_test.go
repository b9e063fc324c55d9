package config_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sschema "k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// constraint is a keyword of a schema that rejects objects, with the path of the schema.
type constraint struct {
	// keyword is the keyword of the schema, value its value; for a CEL rule, value is the message.
	keyword, value string
}

// keywords are the rejecting keywords. Each has a function that reads the keyword from a schema (nil if absent)
// and a function that removes it.
var keywords = map[string]struct {
	read func(*apiextensionsv1.JSONSchemaProps) any
	drop func(*apiextensionsv1.JSONSchemaProps)
}{
	"pattern": {
		func(p *apiextensionsv1.JSONSchemaProps) any { return set(p.Pattern) },
		func(p *apiextensionsv1.JSONSchemaProps) { p.Pattern = "" },
	},
	"enum": {enumOf, func(p *apiextensionsv1.JSONSchemaProps) { p.Enum = nil }},
	"format": {
		func(p *apiextensionsv1.JSONSchemaProps) any { return set(p.Format) },
		func(p *apiextensionsv1.JSONSchemaProps) { p.Format = "" },
	},
	"minimum": {
		func(p *apiextensionsv1.JSONSchemaProps) any { return deref(p.Minimum) },
		func(p *apiextensionsv1.JSONSchemaProps) { p.Minimum = nil },
	},
	"maximum": {
		func(p *apiextensionsv1.JSONSchemaProps) any { return deref(p.Maximum) },
		func(p *apiextensionsv1.JSONSchemaProps) { p.Maximum = nil },
	},
	"minLength": {
		func(p *apiextensionsv1.JSONSchemaProps) any { return deref(p.MinLength) },
		func(p *apiextensionsv1.JSONSchemaProps) { p.MinLength = nil },
	},
	"maxLength": {
		func(p *apiextensionsv1.JSONSchemaProps) any { return deref(p.MaxLength) },
		func(p *apiextensionsv1.JSONSchemaProps) { p.MaxLength = nil },
	},
	"minItems": {
		func(p *apiextensionsv1.JSONSchemaProps) any { return deref(p.MinItems) },
		func(p *apiextensionsv1.JSONSchemaProps) { p.MinItems = nil },
	},
	"maxItems": {
		func(p *apiextensionsv1.JSONSchemaProps) any { return deref(p.MaxItems) },
		func(p *apiextensionsv1.JSONSchemaProps) { p.MaxItems = nil },
	},
	"minProperties": {
		func(p *apiextensionsv1.JSONSchemaProps) any { return deref(p.MinProperties) },
		func(p *apiextensionsv1.JSONSchemaProps) { p.MinProperties = nil },
	},
	"maxProperties": {
		func(p *apiextensionsv1.JSONSchemaProps) any { return deref(p.MaxProperties) },
		func(p *apiextensionsv1.JSONSchemaProps) { p.MaxProperties = nil },
	},
	"x-kubernetes-list-type": {
		func(p *apiextensionsv1.JSONSchemaProps) any { return deref(p.XListType) },
		func(p *apiextensionsv1.JSONSchemaProps) {
			p.XListType, p.XListMapKeys = nil, nil
		},
	},
}

const (
	celKeyword      = "x-kubernetes-validations"
	requiredKeyword = "required"
)

// testedKeywords are the keywords whose every value in our schemas must reject a case. The other keywords are
// limits of size.
var testedKeywords = []string{celKeyword, "pattern", "enum"}

func set(value string) any {
	if value == "" {
		return nil
	}
	return value
}

func deref[T any](value *T) any {
	if value == nil {
		return nil
	}
	return *value
}

func enumOf(p *apiextensionsv1.JSONSchemaProps) any {
	if p.Enum == nil {
		return nil
	}
	var values []string
	for _, value := range p.Enum {
		values = append(values, string(value.Raw))
	}
	return strings.Join(values, ", ")
}

// mutants caches our CRDs with one constraint removed.
type mutants struct {
	crds  map[k8sschema.GroupVersionKind]*apiextensionsv1.CustomResourceDefinition
	built map[string]schemas
}

// Exactly one constraint rejects each case, the one that its message describes. Without this constraint the CRD
// accepts the object, or rejects it for another reason. Each CEL rule, pattern and enumeration of ours rejects
// a case in this way. So no rule is redundant, and no case tests a rule that another rule hides.
func TestEachConstraintAloneRejectsACase(t *testing.T) {
	all, m := mustLoadSchemas(t), mutants{
		crds:  map[k8sschema.GroupVersionKind]*apiextensionsv1.CustomResourceDefinition{},
		built: map[string]schemas{},
	}
	for _, crd := range ourDefinitions(t) {
		m.crds[k8sschema.GroupVersionKind{Group: crd.Spec.Group, Version: "v1beta1", Kind: crd.Spec.Names.Kind}] = crd
	}
	seen := map[constraint]bool{}
	for about, table := range admissionTables {
		base, cases := table().base, table().cases
		for name, c := range cases {
			if c.refused == "" || strings.HasPrefix(c.refused, "unknown fields") { // not rejected by a constraint
				continue
			}
			wanted, old := c.objects(t, base)
			cause, err := m.cause(t, all, wanted, old, c.refused)
			if err != nil {
				t.Errorf("%s/%s: %v", about, name, err)
			}
			seen[cause] = true
		}
	}
	for _, wanted := range m.constraints() {
		if !seen[wanted] {
			t.Errorf("%s %q alone rejects no case", wanted.keyword, wanted.value)
		}
	}
}

var errNoCause = errors.New("no single constraint rejects the object with this message")

// cause returns the constraint that alone rejects an object with a message.
func (m mutants) cause(t *testing.T, all schemas, wanted, old map[string]any, refused string) (constraint, error) {
	t.Helper()
	gvk := (&unstructured.Unstructured{Object: wanted}).GroupVersionKind()
	err := all.admit(t.Context(), wanted, old)
	var several utilerrors.Aggregate
	if !errors.As(err, &several) {
		return constraint{}, fmt.Errorf("%w %q: %w", errNoCause, refused, err)
	}
	for _, one := range several.Errors() {
		var invalid *field.Error
		if !errors.As(one, &invalid) || !strings.Contains(one.Error(), refused) {
			continue
		}
		for candidate, drop := range m.suspects(gvk, invalid) {
			without := m.without(t, gvk, candidate, drop).admit(t.Context(), wanted, old)
			if without == nil || !strings.Contains(without.Error(), refused) {
				return candidate, nil
			}
		}
	}
	return constraint{}, fmt.Errorf("%w %q: %w", errNoCause, refused, err)
}

var index = regexp.MustCompile(`\[[^\]]*\]`)

// suspects returns the constraints that may cause an error, each with a function that removes the constraint
// from a part of the schema.
func (m mutants) suspects(gvk k8sschema.GroupVersionKind, err *field.Error) map[constraint]func(path string,
	p *apiextensionsv1.JSONSchemaProps) {
	found := map[constraint]func(string, *apiextensionsv1.JSONSchemaProps){}
	place := "." + strings.TrimPrefix(index.ReplaceAllString(err.Field, "[]"), ".")
	visit(m.crds[gvk], func(path string, p *apiextensionsv1.JSONSchemaProps) {
		for _, rule := range p.XValidations {
			if rule.Message != "" && strings.Contains(err.Detail, rule.Message) {
				found[constraint{celKeyword, rule.Message}] = func(_ string, p *apiextensionsv1.JSONSchemaProps) {
					p.XValidations = slices.DeleteFunc(p.XValidations,
						func(other apiextensionsv1.ValidationRule) bool { return other.Message == rule.Message })
				}
			}
		}
		for _, name := range p.Required {
			if place == path+"."+name {
				found[constraint{requiredKeyword, name}] = func(at string, p *apiextensionsv1.JSONSchemaProps) {
					if at == path {
						p.Required = slices.DeleteFunc(p.Required, func(other string) bool { return other == name })
					}
				}
			}
		}
		for keyword, k := range keywords {
			// of a map: any key
			if value := k.read(p); value != nil && slices.Contains([]string{place, place[:max(0, strings.LastIndex(place, "."))] + "[]"}, path) {
				found[constraint{keyword, fmt.Sprint(value)}] = func(at string, p *apiextensionsv1.JSONSchemaProps) {
					if at == path {
						k.drop(p)
					}
				}
			}
		}
	})
	return found
}

// without returns the CRD of a kind without a constraint.
func (m mutants) without(t *testing.T, gvk k8sschema.GroupVersionKind, c constraint,
	drop func(string, *apiextensionsv1.JSONSchemaProps),
) schemas {
	t.Helper()
	crd := m.crds[gvk].DeepCopy()
	visit(crd, drop)
	key, err := crd.Marshal()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	if m.built[string(key)] == nil {
		mutant := schemas{}
		NewWithT(t).Expect(mutant.add(crd)).To(Succeed(), "%v", c)
		m.built[string(key)] = mutant
	}
	return m.built[string(key)]
}

// constraints returns the constraints in our part of the CRDs that must each reject a case.
func (m mutants) constraints() []constraint {
	found := map[constraint]bool{}
	for _, crd := range m.crds {
		visit(crd, func(path string, p *apiextensionsv1.JSONSchemaProps) {
			if strings.HasPrefix(path, ".status") || foreignPath(path) {
				return
			}
			for _, rule := range p.XValidations {
				found[constraint{celKeyword, rule.Message}] = true
			}
			for _, keyword := range testedKeywords {
				if k, known := keywords[keyword]; known && k.read(p) != nil {
					found[constraint{keyword, fmt.Sprint(k.read(p))}] = true
				}
			}
		})
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b constraint) int { return strings.Compare(a.keyword+a.value, b.keyword+b.value) })
}

// foreignPath reports whether a part of a schema lies in a type of Kubernetes or Cluster API: see foreignType.
func foreignPath(path string) bool {
	return slices.ContainsFunc([]string{".metadata", ".taints[]", ".readinessGates[]", ".infrastructureRef"},
		func(part string) bool { return strings.Contains(path, part) })
}

// visit calls a function for all parts of the schema of a CRD, with paths like ".spec.list[].field". The
// function may change the parts.
func visit(crd *apiextensionsv1.CustomResourceDefinition, do func(path string, props *apiextensionsv1.JSONSchemaProps)) {
	var below func(path string, props *apiextensionsv1.JSONSchemaProps)
	below = func(path string, props *apiextensionsv1.JSONSchemaProps) {
		do(path, props)
		for name, property := range props.Properties {
			below(path+"."+name, &property)
			props.Properties[name] = property
		}
		if props.Items != nil && props.Items.Schema != nil {
			below(path+"[]", props.Items.Schema)
		}
		if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
			below(path+"[]", props.AdditionalProperties.Schema)
		}
	}
	for i := range crd.Spec.Versions {
		below("", crd.Spec.Versions[i].Schema.OpenAPIV3Schema)
	}
}
