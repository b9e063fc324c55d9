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

// constraint is something in a schema that refuses objects, wherever it stands.
type constraint struct {
	// keyword is that of the schema, value what stands there: of a CEL rule, its message.
	keyword, value string
}

// keywords are what a value is refused for, each with how it is read from a schema, nil where it is not there, and taken out.
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

// triedKeywords are those of which each value that stands in our schemas refuses a case. The others are limits of size.
var triedKeywords = []string{celKeyword, "pattern", "enum"}

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

// mutants are our CRDs with one constraint less, as far as somebody has asked for them.
type mutants struct {
	crds  map[k8sschema.GroupVersionKind]*apiextensionsv1.CustomResourceDefinition
	built map[string]schemas
}

// Each case is refused by one constraint, that which its message is about: the same object passes a CRD without that
// one, or is refused for something else. And each CEL rule, pattern and enumeration of ours refuses a case in this way.
// So no rule is there that refuses nothing, and no case seems to try one that another one hides.
func TestEveryConstraintRefusesACaseByItself(t *testing.T) {
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
			if c.refused == "" || strings.HasPrefix(c.refused, "unknown fields") { // which no constraint refuses
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
			t.Errorf("no case is refused by %s %q alone", wanted.keyword, wanted.value)
		}
	}
}

var errNoCause = errors.New("no constraint refuses it with this message by itself")

// cause finds the constraint that refuses an object with a message: without it nobody does.
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

// suspects are the constraints that may be behind an error, each with what takes it out of a part of the schema.
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
			// of a map any key
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

// without is the CRD of a kind without a constraint.
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

// constraints are those of our part of all CRDs that a case must be refused by.
func (m mutants) constraints() []constraint {
	found := map[constraint]bool{}
	for _, crd := range m.crds {
		visit(crd, func(path string, p *apiextensionsv1.JSONSchemaProps) {
			if strings.HasPrefix(path, ".status") || foreignPath(path) || p.XIntOrString { // a quantity
				return
			}
			for _, rule := range p.XValidations {
				found[constraint{celKeyword, rule.Message}] = true
			}
			for _, keyword := range triedKeywords {
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

// visit goes through all parts of the schema of a CRD, each of which may be changed: ".spec.list[].field".
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
