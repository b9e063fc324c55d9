package config_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/cluster-api/util/contract"
)

// The API server rejects a CRD whose schema is not structural, or whose CEL rules do not compile or may cost
// too much.
func TestCRDsAreAccepted(t *testing.T) {
	for _, crd := range ourDefinitions(t) {
		t.Run(crd.Name, func(t *testing.T) {
			g := NewWithT(t)
			crd = crd.DeepCopy()
			apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
			var internal apiextensions.CustomResourceDefinition
			g.Expect(apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, &internal,
				nil)).To(Succeed())
			internal.Status.StoredVersions = []string{"v1beta1"}
			g.Expect(validation.ValidateCustomResourceDefinition(t.Context(), &internal)).To(BeEmpty())
		})
	}
}

// Cluster API and clusterctl read these fields of a CRD.
func TestCRDsKeepTheContract(t *testing.T) {
	g := NewWithT(t)
	for _, crd := range ourDefinitions(t) {
		g.Expect(crd.Name).To(Equal(contract.CalculateCRDName(crd.Spec.Group, crd.Spec.Names.Kind)))
		g.Expect(crd.Labels).To(HaveKeyWithValue("cluster.x-k8s.io/v1beta2", "v1beta1"), crd.Name)
		g.Expect(crd.Spec.Scope).To(Equal(apiextensionsv1.NamespaceScoped), crd.Name)
		g.Expect(crd.Spec.Names.ListKind).To(Equal(crd.Spec.Names.Kind+"List"), crd.Name)
		g.Expect(crd.Spec.Names.ShortNames).NotTo(BeEmpty(), "%s has a short name, a convention of Cluster API", crd.Name)
	}
}

// kubectl shows the default of an omitted field, and kubectl scale reads it.
func TestOmittedReplicasOfControlPlaneAreShown(t *testing.T) {
	g := NewWithT(t)
	for _, crd := range ourDefinitions(t) {
		if crd.Spec.Names.Kind != "OpenshiftAssistedControlPlane" {
			continue
		}
		version := crd.Spec.Versions[0]
		g.Expect(version.AdditionalPrinterColumns).To(ContainElement(And(HaveField("Name", "Desired"), HaveField("JSONPath", ".spec.replicas"))))
		g.Expect(version.Subresources.Scale.SpecReplicasPath).To(Equal(".spec.replicas"))
		g.Expect(version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["replicas"].Default).To(HaveField("Raw", MatchJSON("1")))
		return
	}
	t.Fatal("the CRD does not exist")
}

// Conventions of Kubernetes APIs keep an object small and its merge predictable. Every string, list and map has
// a bound, and every list has a merge strategy. Every field has a description that begins with its name.
func TestCRDsFollowAPIConventions(t *testing.T) {
	for _, crd := range ourDefinitions(t) {
		for _, version := range crd.Spec.Versions {
			for _, part := range []string{"spec", "status"} {
				if props, ok := version.Schema.OpenAPIV3Schema.Properties[part]; ok {
					NewWithT(t).Expect(unconventional(crd.Spec.Names.Kind+"."+part, part, props)).To(BeEmpty())
				}
			}
		}
	}
}

// unconventional lists violations of the conventions at a path and below it.
func unconventional(path, name string, props apiextensionsv1.JSONSchemaProps) (found []string) {
	if foreignType(path, props) {
		return nil
	}
	if !strings.HasPrefix(props.Description, name+" ") {
		found = append(found, fmt.Sprintf("%s: the description must begin with %q: %q", path, name, props.Description))
	}
	switch props.Type {
	case "number":
		found = append(found, path+": floating point numbers lose precision")
	case "string":
		if props.MaxLength == nil && len(props.Enum) == 0 && props.Format == "" {
			found = append(found, path+": no maximum length and no enum")
		}
	case "array":
		found = append(found, unconventionalList(path, props)...)
	case "object":
		for field, below := range props.Properties {
			found = append(found, unconventional(path+"."+field, field, below)...)
		}
	}
	return found
}

func unconventionalList(path string, props apiextensionsv1.JSONSchemaProps) (found []string) {
	if props.MaxItems == nil {
		found = append(found, path+": no maximum number of items")
	}
	if props.XListType == nil {
		found = append(found, path+": no list type (atomic, set or map)")
	}
	items := props.Items.Schema
	if items.Type == "string" && items.MaxLength == nil && len(items.Enum) == 0 {
		found = append(found, path+"[]: no maximum length and no enum")
	}
	for field, below := range items.Properties {
		if !foreignType(path, *items) {
			found = append(found, unconventional(path+"[]."+field, field, below)...)
		}
	}
	return found
}

// foreignType reports whether a schema is a type of Kubernetes or Cluster API, which we cannot bound.
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
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		all = append(all, crds...)
	}
	return all
}
