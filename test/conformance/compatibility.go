package conformance

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"
)

// expectCompatible compares the CRDs with those of the former release: they accept all that was accepted, with
// the same meaning. It compares nothing if no former release is known.
func (s *suite) expectCompatible(ctx context.Context) {
	GinkgoHelper()
	var before []*apiextensionsv1.CustomResourceDefinition
	if s.Before != nil {
		var err error
		before, err = s.Before(ctx)
		Expect(err).NotTo(HaveOccurred())
	}
	if len(before) == 0 {
		s.addNote("no former release is known: schemas are not compared")
		return
	}
	for _, old := range before {
		now := &apiextensionsv1.CustomResourceDefinition{}
		err := s.client.Get(ctx, client.ObjectKeyFromObject(old), now)
		Expect(apierrors.IsNotFound(err)).To(BeFalse(), "CRD %s is deleted", old.Name)
		Expect(err).NotTo(HaveOccurred())
		found := incompatible(old, now)
		for _, accepted := range s.Accepted {
			found = slices.DeleteFunc(found, func(change string) bool { return strings.Contains(change, accepted) })
		}
		Expect(found).To(BeEmpty(), "changes of %s that refuse or drop what the former release accepted", old.Name)
	}
	s.addNote("%d CRDs are compatible with those of the former release", len(before))
}

// compatible is the configuration of crdify: values may be added to an enumeration, and descriptions may change.
// Changes without a comparison in crdify, patterns above all, are reported.
var compatible = config.Config{
	Validations: []config.ValidationConfig{
		{Name: "enum", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"additionPolicy": "Allow"}},
		{Name: "description", Enforcement: config.EnforcementPolicyNone},
	},
	UnhandledEnforcement: config.EnforcementPolicyError,
	Conversion:           config.ConversionPolicyNone,
}

// incompatible lists the changes of a CRD that may break clients of the former one.
func incompatible(before, now *apiextensionsv1.CustomResourceDefinition) []string {
	GinkgoHelper()
	before, now = before.DeepCopy(), now.DeepCopy()
	var found []string
	for _, old := range before.Spec.Versions {
		version := validations.GetCRDVersionByName(now, old.Name)
		if version == nil || old.Served && !version.Served {
			found = append(found, "version "+old.Name+" is not served any more")
			continue
		}
		found = append(found, loosened(version.Name+" ", old.Schema.OpenAPIV3Schema, version.Schema.OpenAPIV3Schema)...)
	}
	comparison, err := runner.New(&compatible, runner.DefaultRegistry())
	Expect(err).NotTo(HaveOccurred())
	results := comparison.Run(before, now)
	found = append(found, reported("", results.CRDValidation)...)
	for _, properties := range results.SameVersionValidation {
		for path, result := range properties {
			found = append(found, reported(path, result)...)
		}
	}
	slices.Sort(found)
	return found
}

func reported(path string, results []validations.ComparisonResult) []string {
	var all []string
	for _, result := range results {
		for _, message := range result.Errors {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s: %s", path, result.Name, message)))
		}
	}
	return all
}

// loosened removes from two schemas the differences that refuse nothing new, or that are compared here. These are all CEL
// rules, and a pattern that was removed or is a CEL rule now. It returns the new CEL rules that may refuse former objects. A rule
// about a new field is not among them.
func loosened(path string, before, now *apiextensionsv1.JSONSchemaProps) []string {
	var found []string
	for _, rule := range now.XValidations {
		was := slices.ContainsFunc(before.XValidations, func(old apiextensionsv1.ValidationRule) bool { return old.Rule == rule.Rule })
		if !was && !isPattern(rule.Rule, before) && !isAbout(rule.Rule, newFields(before, now)) {
			found = append(found, fmt.Sprintf("%s x-kubernetes-validations: new rule: %s", path, rule.Message))
		}
	}
	before.XValidations, now.XValidations = nil, nil
	if now.Pattern == "" {
		before.Pattern = ""
	}
	for name, old := range before.Properties {
		if other, ok := now.Properties[name]; ok {
			found = append(found, loosened(path+"."+name, &old, &other)...)
			before.Properties[name], now.Properties[name] = old, other
		}
	}
	if before.Items != nil && before.Items.Schema != nil && now.Items != nil && now.Items.Schema != nil {
		found = append(found, loosened(path+"[]", before.Items.Schema, now.Items.Schema)...)
	}
	if valueSchema(before.AdditionalProperties) != nil && valueSchema(now.AdditionalProperties) != nil {
		found = append(found, loosened(path+"[*]", before.AdditionalProperties.Schema, now.AdditionalProperties.Schema)...)
	}
	return found
}

// valueSchema returns the schema of the values of a map; nil without one.
func valueSchema(values *apiextensionsv1.JSONSchemaPropsOrBool) *apiextensionsv1.JSONSchemaProps {
	if values == nil {
		return nil
	}
	return values.Schema
}

// matches is a CEL rule that requires a pattern, of a value or of each item of a list.
var matches = regexp.MustCompile(`^self\.(all\(\w+, \w+\.)?matches\('(.*)'\)\)?$`)

// isPattern reports whether a CEL rule requires the pattern that the schema or its items had before. Other than a pattern, a
// rule has a message of its own.
func isPattern(rule string, before *apiextensionsv1.JSONSchemaProps) bool {
	found := matches.FindStringSubmatch(rule)
	if found == nil {
		return false
	}
	pattern := before.Pattern
	if found[1] != "" && before.Items != nil && before.Items.Schema != nil {
		pattern = before.Items.Schema.Pattern
	}
	// CEL escapes backslashes and quotation marks. A class of one character needs no backslash.
	required := strings.NewReplacer(`\\`, `\`, `\x22`, `"`, `[.]`, `\.`).Replace(found[2])
	return required == strings.ReplaceAll(pattern, "[.]", `\.`)
}

// newFields returns the names of new fields of a schema, at any depth.
func newFields(before, now *apiextensionsv1.JSONSchemaProps) []string {
	var names []string
	for name, field := range now.Properties {
		old, ok := before.Properties[name]
		if !ok {
			names = append(names, name)
			continue
		}
		names = append(names, newFields(&old, &field)...)
	}
	return names
}

func isAbout(rule string, fields []string) bool {
	return slices.ContainsFunc(fields, func(name string) bool {
		return regexp.MustCompile(`\.\??` + regexp.QuoteMeta(name) + `\b`).MatchString(rule)
	})
}
