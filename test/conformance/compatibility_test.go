package conformance

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// changeable returns a CRD with a field of each kind that is compared.
func changeable() *apiextensionsv1.CustomResourceDefinition {
	type fields = map[string]apiextensionsv1.JSONSchemaProps
	name := apiextensionsv1.JSONSchemaProps{
		Type: "string", Pattern: `^[a-z\s.\."]*$`, MaxLength: ptr.To[int64](20),
		Enum: []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`"b"`)}},
	}
	lower := apiextensionsv1.JSONSchemaProps{Type: "string", Pattern: "^[a-z]*$"}
	item := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields{"name": name}}
	spec := apiextensionsv1.JSONSchemaProps{
		Type: "object", Required: []string{"list"},
		Properties: fields{
			"list":   {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}},
			"names":  {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: lower.DeepCopy()}},
			"labels": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: lower.DeepCopy()}},
			"number": {Type: "integer", Maximum: ptr.To(5.0)},
		},
		XValidations: apiextensionsv1.ValidationRules{{Rule: "self.number > 1", Message: "number must be greater than 1"}},
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1beta1", Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type:       "object",
			Properties: fields{"spec": spec},
		}},
	}}
	return crd
}

func TestIncompatibleChangesAreReported(t *testing.T) {
	type props = apiextensionsv1.JSONSchemaProps
	inSpec := func(how func(*props)) func(*apiextensionsv1.CustomResourceDefinition) {
		return func(crd *apiextensionsv1.CustomResourceDefinition) {
			root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
			spec := root.Properties["spec"]
			how(&spec)
			root.Properties["spec"] = spec
		}
	}
	number := func(how func(*props)) func(*apiextensionsv1.CustomResourceDefinition) {
		return inSpec(func(spec *props) {
			field := spec.Properties["number"]
			how(&field)
			spec.Properties["number"] = field
		})
	}
	name := func(how func(*props)) func(*apiextensionsv1.CustomResourceDefinition) {
		return inSpec(func(spec *props) {
			item := spec.Properties["list"].Items.Schema
			field := item.Properties["name"]
			how(&field)
			item.Properties["name"] = field
		})
	}
	rule := func(rule string) func(*apiextensionsv1.CustomResourceDefinition) {
		return inSpec(func(spec *props) {
			spec.Properties["new"] = props{Type: "string"}
			spec.XValidations = append(spec.XValidations, apiextensionsv1.ValidationRule{Rule: rule, Message: "the new rule"})
		})
	}
	asRule := func(p *props, pattern string) {
		p.Pattern = ""
		p.XValidations = apiextensionsv1.ValidationRules{{Rule: "self.matches('" + pattern + "')", Message: "name must be lower-case"}}
	}
	for what, tc := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinition)
		found  string // empty: nothing
	}{
		"nothing":                 {change: func(*apiextensionsv1.CustomResourceDefinition) {}},
		"a field is removed":      {inSpec(func(spec *props) { delete(spec.Properties, "number") }), "removed field : v1beta1.^.spec.number"},
		"a field is required now": {inSpec(func(spec *props) { spec.Required = append(spec.Required, "number") }), "new required fields"},
		"a new field is required": {inSpec(func(spec *props) {
			spec.Properties["new"] = props{Type: "string"}
			spec.Required = []string{"list", "new"}
		}), "new required fields"},
		"a new field":     {change: inSpec(func(spec *props) { spec.Properties["new"] = props{Type: "string"} })},
		"another type":    {number(func(p *props) { p.Type = "string" }), "^.spec.number type: type changed"},
		"a lower maximum": {number(func(p *props) { p.Maximum = ptr.To(4.0) }), "^.spec.number maximum: maximum decreased"},
		"a minimum": {
			number(func(p *props) { p.Minimum = ptr.To(1.0) }),
			"^.spec.number minimum: minimum constraint added",
		},
		"a higher maximum": {change: number(func(p *props) { p.Maximum = ptr.To(6.0) })},
		"a default": {
			number(func(p *props) { p.Default = &apiextensionsv1.JSON{Raw: []byte("2")} }),
			"^.spec.number default: default added",
		},
		"fewer values":         {name(func(p *props) { p.Enum = p.Enum[:1] }), "enum: allowed enum values removed"},
		"more values":          {change: name(func(p *props) { p.Enum = append(p.Enum, apiextensionsv1.JSON{Raw: []byte(`"c"`)}) })},
		"another pattern":      {name(func(p *props) { p.Pattern = "^[a-f]*$" }), "unhandled: unhandled changes found"},
		"a pattern is removed": {change: name(func(p *props) { p.Pattern = "" })},
		"a pattern is a rule":  {change: name(func(p *props) { asRule(p, `^[a-z\\s.[.]\x22]*$`) })},
		"a pattern of items is a rule of the list": {change: inSpec(func(spec *props) {
			spec.Properties["names"].Items.Schema.Pattern = ""
			list := spec.Properties["names"]
			list.XValidations = apiextensionsv1.ValidationRules{{Rule: "self.all(n, n.matches('^[a-z]*$'))"}}
			spec.Properties["names"] = list
		})},
		"a pattern of values is a rule": {change: inSpec(func(spec *props) {
			asRule(spec.Properties["labels"].AdditionalProperties.Schema, "^[a-z]*$")
		})},
		"a rule with another pattern": {
			name(func(p *props) { asRule(p, "^[a-f]*$") }), "new rule: name must be lower-case",
		},
		"another description":            {change: name(func(p *props) { p.Description = "name of it" })},
		"shorter":                        {name(func(p *props) { p.MaxLength = ptr.To[int64](19) }), "maxLength: maximum decreased"},
		"a rule about an existing field": {rule("self.number < 4"), "v1beta1 .spec x-kubernetes-validations: new rule: the new rule"},
		"a rule about a new field":       {change: rule("!has(self.new) || self.number < 4")},
		"another rule in place of one": {
			inSpec(func(spec *props) { spec.XValidations[0].Rule = "self.number > 2" }),
			"v1beta1 .spec x-kubernetes-validations: new rule: number must be greater than 1",
		},
		"a rule is removed": {change: inSpec(func(spec *props) { spec.XValidations = nil })},
		"a version that is not served": {
			func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Served = false },
			"version v1beta1 is not served any more",
		},
		"a version that was removed": {
			func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Name = "v1" },
			"version v1beta1 is not served any more",
		},
		"another scope": {
			func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = apiextensionsv1.ClusterScoped },
			"scope:",
		},
	} {
		t.Run(what, func(t *testing.T) {
			RegisterTestingT(t)
			now := changeable()
			tc.change(now)
			found := incompatible(changeable(), now)
			if tc.found == "" {
				Expect(found).To(BeEmpty())
				return
			}
			Expect(found).To(ContainElement(ContainSubstring(tc.found)))
		})
	}
}
