package config_test

import (
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/cluster-api/util/contract"
)

// The API server refuses a CRD whose schema is not structural, or whose CEL rules do not compile or may cost too much.
func TestCRDsAreAccepted(t *testing.T) {
	for _, crd := range ourDefinitions(t) {
		t.Run(crd.Name, func(t *testing.T) {
			crd = crd.DeepCopy()
			apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
			var internal apiextensions.CustomResourceDefinition
			if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, &internal, nil); err != nil {
				t.Fatalf("cannot convert: %v", err)
			}
			internal.Status.StoredVersions = []string{"v1beta1"}
			if err := validation.ValidateCustomResourceDefinition(t.Context(), &internal).ToAggregate(); err != nil {
				t.Errorf("the API server would refuse it: %v", err)
			}
		})
	}
}

// What Cluster API and clusterctl read from a CRD.
func TestCRDsKeepTheContract(t *testing.T) {
	for _, crd := range ourDefinitions(t) {
		if wanted := contract.CalculateCRDName(crd.Spec.Group, crd.Spec.Names.Kind); crd.Name != wanted {
			t.Errorf("%s: Cluster API looks for the name %s", crd.Name, wanted)
		}
		if crd.Labels["cluster.x-k8s.io/v1beta2"] != "v1beta1" {
			t.Errorf("%s: label cluster.x-k8s.io/v1beta2 must be v1beta1, not %q", crd.Name, crd.Labels["cluster.x-k8s.io/v1beta2"])
		}
		if crd.Spec.Scope != apiextensionsv1.NamespaceScoped {
			t.Errorf("%s must be namespaced", crd.Name)
		}
		if crd.Spec.Names.ListKind != crd.Spec.Names.Kind+"List" {
			t.Errorf("%s: list kind %s", crd.Name, crd.Spec.Names.ListKind)
		}
	}
}

// The conventions of Kubernetes APIs that keep an object small and its merge predictable: every string, list and map is
// bounded, every list says how it merges, every field says what it means and begins with its name.
func TestCRDsFollowAPIConventions(t *testing.T) {
	for _, crd := range ourDefinitions(t) {
		for _, version := range crd.Spec.Versions {
			for _, part := range []string{"spec", "status"} {
				if props, ok := version.Schema.OpenAPIV3Schema.Properties[part]; ok {
					checkConventions(t, crd.Spec.Names.Kind+"."+part, part, props)
				}
			}
		}
	}
}

func checkConventions(t *testing.T, path, name string, props apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	if foreignType(path, props) {
		return
	}
	if !strings.HasPrefix(props.Description, name+" ") {
		t.Errorf("%s: the description must begin with %q: %q", path, name, props.Description)
	}
	switch props.Type {
	case "number":
		t.Errorf("%s: floating point numbers lose precision", path)
	case "string":
		if props.MaxLength == nil && len(props.Enum) == 0 && props.Format == "" {
			t.Errorf("%s: no maximum length and no enum", path)
		}
	case "array":
		checkListConventions(t, path, props)
	case "object":
		for field, below := range props.Properties {
			checkConventions(t, path+"."+field, field, below)
		}
	}
}

func checkListConventions(t *testing.T, path string, props apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	if props.MaxItems == nil {
		t.Errorf("%s: no maximum number of items", path)
	}
	if props.XListType == nil {
		t.Errorf("%s: no list type (atomic, set or map)", path)
	}
	items := props.Items.Schema
	if items.Type == "string" && items.MaxLength == nil && len(items.Enum) == 0 {
		t.Errorf("%s[]: no maximum length and no enum", path)
	}
	for field, below := range items.Properties {
		if !foreignType(path, *items) {
			checkConventions(t, path+"[]."+field, field, below)
		}
	}
}

// foreignType tells whether the schema is that of a type of Kubernetes or Cluster API, which is not ours to bound.
func foreignType(path string, props apiextensionsv1.JSONSchemaProps) bool {
	for _, end := range []string{".metadata", ".conditions", "Selector", ".taints", ".readinessGates", ".infrastructureRef"} {
		if strings.HasSuffix(path, end) {
			return true
		}
	}
	// a reference to an object in the same namespace, a quantity
	return props.XMapType != nil || props.XIntOrString
}

func ourDefinitions(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, dir := range ourCRDs {
		crds, err := readCRDs(dir)
		if err != nil {
			t.Fatalf("cannot read our CRDs: %v", err)
		}
		all = append(all, crds...)
	}
	return all
}
