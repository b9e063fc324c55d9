package config_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	tools "github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
)

// agentInstallKinds are the kinds of assisted-service of which we have Go types of our own.
var agentInstallKinds = map[string]any{
	"agents": aiv1beta1.Agent{}, "infraenvs": aiv1beta1.InfraEnv{}, "nmstateconfigs": aiv1beta1.NMStateConfig{},
}

// newerFields are fields of our types that the assisted-service of test/tools/crds does not have yet.
var newerFields = map[string]string{
	"InfraEnv spec.ntpSources": "array", "InfraEnv spec.ntpSources[]": "string", "InfraEnv spec.networkDiscoveryDelaySeconds": "integer",
	"Agent status.inventory.gpus": "array", "Agent status.inventory.gpus[]": "object", "Agent status.inventory.gpus[].vendorID": "string",
	"Agent status.inventory.gpus[].deviceID": "string",
}

// TestAgentInstallFields compares each field of our types with the CRDs of assisted-service. A decoder ignores a field with
// a wrong name, and the API server refuses it.
func TestAgentInstallFields(t *testing.T) {
	g, crds := NewWithT(t), generatedCRDs(t)
	ours, declared := map[string]string{}, map[string]string{}
	for plural, example := range agentInstallKinds {
		crd := crds[plural+"."+aiv1beta1.GroupVersion.Group]
		g.Expect(crd).NotTo(BeNil(), plural)
		kind := crd.Spec.Names.Kind
		describeType(ours, kind+" ", reflect.TypeOf(example))
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		describeSchema(declared, kind+" spec", schema.Properties["spec"])
		describeSchema(declared, kind+" status", schema.Properties["status"])
	}
	for field, kind := range newerFields {
		g.Expect(declared).NotTo(HaveKey(field), "no longer newer")
		declared[field] = kind
	}
	g.Expect(len(ours)).To(BeNumerically(">", 100))
	for field, kind := range ours {
		g.Expect(declared).To(HaveKeyWithValue(field, kind))
	}
	t.Run("current assisted-service", func(t *testing.T) { checkCurrentFields(t, ours) })
}

// checkCurrentFields compares our fields with a list of the fields of a newer assisted-service. Each line has the kind
// with version, the path and the type of a field.
func checkCurrentFields(t *testing.T, ours map[string]string) {
	g, file := NewWithT(t), os.Getenv("ASSISTED_SERVICE_FIELDS")
	if file == "" {
		t.Skip("ASSISTED_SERVICE_FIELDS names no list of fields")
	}
	content, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	declared := map[string]string{}
	for line := range strings.Lines(string(content)) {
		if words := strings.Fields(line); len(words) >= 3 && words[0] != "#" {
			declared[strings.TrimSuffix(words[0], "/v1beta1")+" "+words[1]] = words[2]
		}
	}
	for field, kind := range ours {
		g.Expect(declared).To(HaveKeyWithValue(field, kind))
	}
}

// generatedCRDs returns the CRDs of assisted-service and Hive by name.
func generatedCRDs(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	g := NewWithT(t)
	builder, err := tools.NewBuilder(".", io.Discard)
	g.Expect(err).NotTo(HaveOccurred())
	dir, err := builder.GenerateCRDs(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	crds := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		crd := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(yaml.Unmarshal(content, crd)).To(Succeed(), file)
		crds[crd.Name] = crd
	}
	return crds
}

// describeSchema adds the type of each field of a schema to found: "path[]" for items of a list, "path{}" for values of a
// map.
func describeSchema(found map[string]string, path string, schema apiextensionsv1.JSONSchemaProps) {
	found[path] = schema.Type
	for name, property := range schema.Properties {
		describeSchema(found, path+"."+name, property)
	}
	if schema.Items != nil {
		describeSchema(found, path+"[]", *schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		describeSchema(found, path+"{}", *schema.AdditionalProperties.Schema)
	}
}

// describeType adds the type of each field of a Go type to found, as describeSchema does.
func describeType(found map[string]string, path string, described reflect.Type) {
	switch described {
	case reflect.TypeFor[metav1.Time]():
		found[path] = "string"
		return
	case reflect.TypeFor[json.RawMessage]():
		found[path] = "object"
		return
	}
	switch described.Kind() {
	case reflect.Pointer:
		describeType(found, path, described.Elem())
	case reflect.Slice:
		found[path] = "array"
		describeType(found, path+"[]", described.Elem())
	case reflect.Map:
		found[path] = "object"
		describeType(found, path+"{}", described.Elem())
	case reflect.Struct:
		describeFields(found, path, described)
	case reflect.Bool:
		found[path] = "boolean"
	case reflect.Int32, reflect.Int64:
		found[path] = "integer"
	default:
		found[path] = described.Kind().String()
	}
}

func describeFields(found map[string]string, path string, described reflect.Type) {
	object := strings.HasSuffix(path, " ")
	if !object {
		found[path] = "object"
		path += "."
	}
	for field := range described.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if object && (name == "" || name == "metadata") {
			continue
		}
		describeType(found, path+name, field.Type)
	}
}
