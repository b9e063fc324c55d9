package conformance

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/util/contract"
	"sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"
)

// components returns both providers by the names of their types in clusterctl.
func (s *suite) components() map[string]*Component {
	return map[string]*Component{"bootstrap": &s.Bootstrap, "control-plane": &s.ControlPlane}
}

// manifestRules check the manifests, and the CRDs that the API server has from them.
func (s *suite) manifestRules() {
	s.kindRules("B", &s.Bootstrap)
	s.kindRules("P", &s.ControlPlane)

	s.rule("B6", "contract in metadata.yaml", must, func(ctx SpecContext) {
		for _, series := range s.metadata().ReleaseSeries {
			for _, component := range s.components() {
				Expect(s.crd(ctx, component.Kind).Labels).To(HaveKey(capiGroup+"/"+series.Contract), "release series %d.%d", series.Major, series.Minor)
			}
		}
	})
	s.rule("B7", "API versions of its own, compatible with those of the former release", should, func(ctx SpecContext) {
		for _, component := range s.components() {
			for _, k := range []kind{component.Kind, component.Template} {
				crd := s.crd(ctx, k)
				Expect(crd.Status.StoredVersions).To(ConsistOf(k.Version), "stored versions of %s", crd.Name)
				Expect(k.Version).To(MatchRegexp(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`))
			}
		}
		s.expectCompatible(ctx)
	}, NodeTimeout(soon))
	s.rule("B18", "no terminal failures", info, func(ctx SpecContext) { s.expectNoFailureFields(ctx, s.Bootstrap.Kind) })
	s.rule("P21", "no terminal failures", info, func(ctx SpecContext) { s.expectNoFailureFields(ctx, s.ControlPlane.Kind) })
	s.rule("P7", "spec.replicas can be omitted, and zero is a value", must, func(ctx SpecContext) {
		Expect(schemaOf(s.crd(ctx, s.ControlPlane.Kind), "spec", "replicas").Type).To(Equal("integer"))
		Expect(schemaOf(s.crd(ctx, s.ControlPlane.Kind), "spec").Required).NotTo(ContainElement("replicas"))
		if s.fixtures.small == nil {
			s.addNote("tried with no control plane")
			return
		}
		s.expectUnsetReplicas(ctx, s.fixtures.small)
	})
	s.rule("P17", "spec.rollout.after", must, func(ctx SpecContext) {
		Expect(schemaOf(s.crd(ctx, s.ControlPlane.Kind), "spec", "rollout", "after")).NotTo(BeNil())
	})
	s.shippedRules()
}

// kindRules check the requirements of both contracts on kinds, with the numbers of one contract.
func (s *suite) kindRules(prefix string, component *Component) {
	// The contract of control planes has fewer rows for the same requirements.
	ids := map[string]string{"scope": "B1", "meta": "B2", "rbac": "B3", "owner": "B4", "label": "B5", "name": "B8", "list": "B9"}
	if prefix == "P" {
		ids = map[string]string{"scope": "P1", "rbac": "P2", "label": "P3", "name": "P4"}
	}
	crds := func(ctx context.Context) []*apiextensionsv1.CustomResourceDefinition {
		return []*apiextensionsv1.CustomResourceDefinition{s.crd(ctx, component.Kind), s.crd(ctx, component.Template)}
	}
	each := func(check func(*apiextensionsv1.CustomResourceDefinition)) func(SpecContext) {
		return func(ctx SpecContext) {
			for _, crd := range crds(ctx) {
				check(crd)
			}
		}
	}
	add := func(key, title string, body func(SpecContext)) {
		if ids[key] != "" {
			s.rule(ids[key], title, must, body)
		}
	}
	add("scope", "scope", each(func(crd *apiextensionsv1.CustomResourceDefinition) {
		Expect(crd.Spec.Scope).To(Equal(apiextensionsv1.NamespaceScoped), crd.Name)
	}))
	add("meta", "TypeMeta and ObjectMeta", each(func(crd *apiextensionsv1.CustomResourceDefinition) {
		Expect(schemaOf(crd).Properties).To(And(HaveKey("apiVersion"), HaveKey("kind"), HaveKey("metadata")), crd.Name)
	}))
	add("rbac", "rights of Cluster API core", func(ctx SpecContext) { s.expectCoreMay(ctx, component) })
	add("owner", "rights on owners (OwnerReferencesPermissionEnforcement)",
		func(ctx SpecContext) { s.expectOwnersMayBeBlocked(ctx, component) })
	add("label", "contract label of the CRD", each(func(crd *apiextensionsv1.CustomResourceDefinition) {
		expectContractLabel(crd)
	}))
	add("name", "name of the CRD", each(func(crd *apiextensionsv1.CustomResourceDefinition) {
		Expect(crd.Name).To(Equal(contract.CalculateCRDName(crd.Spec.Group, crd.Spec.Names.Kind)))
		Expect(crd.Spec.Names.Categories).To(ContainElement("cluster-api"), crd.Name)
		Expect(crd.Spec.Names.ListKind).To(Equal(crd.Spec.Names.Kind + "List"))
		expectAcceptedShortNames(crd)
		Expect(crd.Name == contract.CalculateCRDName(component.Template.Group, component.Template.Kind) || hasStatus(crd)).To(BeTrue(),
			"%s has a status subresource", crd.Name)
	}))
	add("list", "list kind", each(func(crd *apiextensionsv1.CustomResourceDefinition) {
		Expect(crd.Spec.Names.ListKind).To(Equal(crd.Spec.Names.Kind + "List"))
	}))
}

// expectAcceptedShortNames expects that no other kind has a short name of this kind: the API server omits a name that
// is taken. The contracts require no short names.
func expectAcceptedShortNames(crd *apiextensionsv1.CustomResourceDefinition) {
	GinkgoHelper()
	Expect(crd.Status.AcceptedNames.ShortNames).To(ConsistOf(crd.Spec.Names.ShortNames),
		"the short names of %s that the API server accepted", crd.Name)
}

// hasStatus reports whether a kind has the status subresource, so that writes of the rest of an object do not
// change its status.
func hasStatus(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Subresources == nil || v.Subresources.Status == nil
	})
}

// expectMetadataOfTemplates expects that templates keep the labels and annotations that core clones from them.
// Nothing is created.
func (s *suite) expectMetadataOfTemplates(ctx context.Context, namespace string) {
	GinkgoHelper()
	templates := s.list(ctx, s.Bootstrap.Template, namespace)
	Expect(templates).NotTo(BeEmpty())
	labeled := &object{Object: map[string]any{"spec": runtime.DeepCopyJSON(templates[0].Object["spec"].(map[string]any))}}
	labeled.SetGroupVersionKind(s.Bootstrap.Template)
	labeled.SetNamespace(namespace)
	labeled.SetName("labeled")
	metadata := map[string]any{
		"labels":      map[string]any{"conformance/label": "one"},
		"annotations": map[string]any{"conformance/annotation": "two"},
	}
	Expect(unstructured.SetNestedMap(labeled.Object, metadata, "spec", "template", "metadata")).To(Succeed())
	Expect(s.client.Create(ctx, labeled, client.DryRunAll)).To(Succeed())
	Expect(at(labeled, "spec", "template", "metadata")).To(Equal(metadata))
}

func expectCloned(o *object) {
	GinkgoHelper()
	Expect(o.GetAnnotations()).To(And(HaveKey(capiGroup+"/cloned-from-name"), HaveKey(capiGroup+"/cloned-from-groupkind")), title(o))
}

func expectContractLabel(crd *apiextensionsv1.CustomResourceDefinition) {
	GinkgoHelper()
	Expect(crd.Labels).To(HaveKey(contractLabel), crd.Name)
	for version := range strings.SplitSeq(crd.Labels[contractLabel], "_") {
		Expect(slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == version && v.Served
		})).To(BeTrue(), "%s serves %s", crd.Name, version)
	}
}

// schemaOf returns the schema of a field of the version that the contract uses; nil if the field does not exist.
func schemaOf(crd *apiextensionsv1.CustomResourceDefinition, fields ...string) *apiextensionsv1.JSONSchemaProps {
	for i := range crd.Spec.Versions {
		if version := &crd.Spec.Versions[i]; version.Storage {
			return below(version.Schema.OpenAPIV3Schema, fields...)
		}
	}
	return nil
}

func below(props *apiextensionsv1.JSONSchemaProps, fields ...string) *apiextensionsv1.JSONSchemaProps {
	for _, field := range fields {
		next, ok := props.Properties[field]
		if !ok {
			return nil
		}
		props = &next
	}
	return props
}

func (s *suite) expectNoFailureFields(ctx context.Context, k kind) {
	GinkgoHelper()
	expectNone(schemaOf(s.crd(ctx, k), "status"), "failureReason", "failureMessage")
}

// expectNone expects that a schema has no field of the given names, at any depth.
func expectNone(props *apiextensionsv1.JSONSchemaProps, names ...string) {
	GinkgoHelper()
	for name := range props.Properties {
		Expect(names).NotTo(ContainElement(name))
		below := props.Properties[name]
		expectNone(&below, names...)
	}
}

// expectUnsetReplicas checks the value of spec.replicas if it is omitted and if it is zero, for a control plane
// of one Machine. Nothing is changed.
func (s *suite) expectUnsetReplicas(ctx context.Context, f *fixture) {
	GinkgoHelper()
	try := func(replicas string) (any, error) {
		controlPlane := s.controlPlane(ctx, f)
		err := s.client.Patch(ctx, controlPlane, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%s}}`, replicas)),
			client.DryRunAll)
		return at(controlPlane, "spec", "replicas"), err
	}
	unset, err := try("null")
	Expect(err).NotTo(HaveOccurred())
	Expect(unset).To(Or(BeNil(), BeEquivalentTo(1)), "omitted replicas are unset or, as in KubeadmControlPlane, one")
	zero, err := try("0")
	if err != nil {
		Expect(err).To(Satisfy(apierrors.IsInvalid))
		s.addNote("zero is refused: %v", err)
		return
	}
	Expect(zero).To(BeEquivalentTo(0), "zero stays zero")
}

// expectCoreMay checks the rights of core: the roles that core aggregates, and those that Cluster API itself
// ships with the rights on its own groups.
func (s *suite) expectCoreMay(ctx context.Context, component *Component) {
	GinkgoHelper()
	roles := &rbacv1.ClusterRoleList{}
	Expect(s.client.List(ctx, roles)).To(Succeed())
	var rules []rbacv1.PolicyRule
	for _, role := range roles.Items {
		if role.Labels[capiGroup+"/aggregate-to-manager"] == "true" || role.AggregationRule != nil && strings.Contains(role.Name, "capi") {
			rules = append(rules, role.Rules...)
		}
	}
	for _, k := range []kind{component.Kind, component.Template} {
		for _, verb := range []string{"create", "delete", "get", "list", "patch", "update", "watch"} {
			Expect(allowed(rules, k.Group, s.resource(k), verb)).To(BeTrue(), "core is allowed to %s %s", verb, k.Kind)
		}
	}
}

// expectOwnersMayBeBlocked checks that the manager may update the finalizers of the objects that it sets as
// owners with blockOwnerDeletion.
func (s *suite) expectOwnersMayBeBlocked(ctx context.Context, component *Component) {
	GinkgoHelper()
	var rules []rbacv1.PolicyRule
	for _, o := range s.manifests(ctx, component) {
		if o.GetKind() != "ClusterRole" {
			continue
		}
		role := &rbacv1.ClusterRole{}
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role)).To(Succeed())
		rules = append(rules, role.Rules...)
	}
	Expect(allowed(rules, component.Kind.Group, s.resource(component.Kind)+"/finalizers", "update")).To(BeTrue())
	s.addNote("all specs run with the admission plug-in, and the shipped roles")
}

func allowed(rules []rbacv1.PolicyRule, group, resource, verb string) bool {
	has := func(list []string, wanted string) bool {
		return slices.Contains(list, wanted) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return has(r.APIGroups, group) && has(r.Resources, resource) && has(r.Verbs, verb)
	})
}

func (s *suite) resource(k kind) string {
	GinkgoHelper()
	mapping, err := s.client.RESTMapper().RESTMapping(k.GroupKind(), k.Version)
	Expect(err).NotTo(HaveOccurred())
	return mapping.Resource.Resource
}

type metadataFile struct {
	APIVersion    string `json:"apiVersion"`
	Kind          string `json:"kind"`
	ReleaseSeries []struct {
		Major, Minor int
		Contract     string
	} `json:"releaseSeries"`
}

func (s *suite) metadata() metadataFile {
	GinkgoHelper()
	var metadata metadataFile
	Expect(sigsyaml.UnmarshalStrict(s.Metadata, &metadata)).To(Succeed())
	return metadata
}

// variable matches a variable of clusterctl: ${NAME}, ${NAME:=default}.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(?::?[=-]([^}]*))?\}`)

// WithDefaults replaces the variables of manifests by their defaults. A variable without default becomes empty.
func WithDefaults(manifests []byte) []byte { return variable.ReplaceAll(manifests, []byte("$2")) }

// render returns the rendered manifests of a component. They are rendered once.
func (s *suite) render(ctx context.Context, component *Component) []byte {
	GinkgoHelper()
	if s.rendered[component] == nil {
		content, err := component.Manifests(ctx)
		Expect(err).NotTo(HaveOccurred())
		s.rendered[component] = content
	}
	return s.rendered[component]
}

// manifests returns the rendered objects of a component, with the defaults of their variables.
func (s *suite) manifests(ctx context.Context, component *Component) []*object {
	GinkgoHelper()
	objects, err := decode(WithDefaults(s.render(ctx, component)))
	Expect(err).NotTo(HaveOccurred())
	return objects
}

func decode(content []byte) ([]*object, error) {
	decoded, err := yaml.ToUnstructured(content)
	if err != nil {
		return nil, fmt.Errorf("cannot read manifests: %w", err)
	}
	objects := make([]*object, 0, len(decoded))
	for i := range decoded {
		objects = append(objects, &decoded[i])
	}
	return objects, nil
}

// shippedRules check the objects that clusterctl installs.
func (s *suite) shippedRules() {
	forEach := func(check func(name string, component *Component, objects []*object)) func(SpecContext) {
		return func(ctx SpecContext) {
			for name, component := range s.components() {
				check(name, component, s.manifests(ctx, component))
			}
		}
	}
	s.rule("C4", "provider name", must, func() {
		for _, component := range s.components() {
			Expect(component.Name).To(MatchRegexp(`^[a-z0-9-]{1,63}$`))
		}
	})
	s.rule("C5", "metadata.yaml", must, func() {
		metadata := s.metadata()
		Expect(metadata.APIVersion).To(Equal("clusterctl.cluster.x-k8s.io/v1alpha3"))
		Expect(metadata.Kind).To(Equal("Metadata"))
		Expect(metadata.ReleaseSeries).NotTo(BeEmpty())
	})
	s.rule("C7", "one Namespace", must, forEach(func(name string, _ *Component, objects []*object) {
		Expect(ofKind(objects, "Namespace")).To(HaveLen(1), name)
	}))
	s.rule("C8", "objects in the target namespace", must, forEach(func(name string, _ *Component, objects []*object) {
		namespace := ofKind(objects, "Namespace")[0].GetName()
		for _, o := range objects {
			Expect(o.GetNamespace()).To(BeElementOf("", namespace), "%s: %s", name, title(o))
		}
	}))
	s.rule("C9", "Deployment", must, forEach(func(name string, _ *Component, objects []*object) {
		Expect(ofKind(objects, "Deployment")).To(HaveLen(1), name)
	}))
	s.rule("C10", "container manager", must, forEach(func(name string, _ *Component, objects []*object) {
		Expect(containers(objects)).To(ContainElement(HaveField("Name", "manager")), name)
	}))
	s.rule("C11", "flag --namespace", must, forEach(func(name string, _ *Component, objects []*object) {
		for _, c := range containers(objects) {
			Expect(c.Args).NotTo(ContainElement(MatchRegexp(`^--namespace=.`)), "%s: clusterctl installs managers of all namespaces", name)
		}
	}))
	s.rule("C12", "canonical image names", should, forEach(func(name string, _ *Component, objects []*object) {
		for _, container := range containers(objects) {
			Expect(container.Image).To(MatchRegexp(`^[a-z0-9.-]+\.[a-z]+(:[0-9]+)?/[a-z0-9._/-]+(:[\w.-]+|@sha256:[0-9a-f]{64})$`), name)
		}
	}))
	s.rule("C13", "variables with defaults", should, func(ctx SpecContext) {
		for name, component := range s.components() {
			for _, match := range variable.FindAllStringSubmatch(string(s.render(ctx, component)), -1) {
				Expect(match[0]).To(ContainSubstring("="), "%s: %s has a default", name, match[1])
			}
		}
	})
	s.rule("C14", "provider label", should, forEach(func(name string, component *Component, objects []*object) {
		for _, o := range objects {
			Expect(o.GetLabels()).To(HaveKeyWithValue(capiGroup+"/provider", name+"-"+component.Name), title(o))
		}
	}))
}

func ofKind(objects []*object, kind string) []*object {
	return slices.DeleteFunc(slices.Clone(objects), func(o *object) bool { return o.GetKind() != kind })
}

type container struct {
	Name, Image string
	Args        []string
}

func containers(objects []*object) []container {
	GinkgoHelper()
	var all []container
	for _, o := range ofKind(objects, "Deployment") {
		deployment := &appsv1.Deployment{}
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, deployment)).To(Succeed())
		for _, c := range deployment.Spec.Template.Spec.Containers {
			all = append(all, container{c.Name, c.Image, c.Args})
		}
	}
	return all
}
