package siteconfig

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"

	sprig "github.com/go-task/slim-sprig" // of the version that the operator has: later ones have other functions
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8syaml "sigs.k8s.io/yaml"
)

const (
	// OwnedByLabel is on all that the operator renders: namespace and name of the ClusterInstance, with an underscore between them.
	OwnedByLabel = "siteconfig.open-cluster-management.io/owned-by"
	// WaveAnnotation is where in the order an object is created.
	WaveAnnotation = "siteconfig.open-cluster-management.io/sync-wave"
)

// data is what templates are executed with.
type data struct {
	Spec        Spec
	SpecialVars specialVars
}

// specialVars follow from the spec and from what it names.
type specialVars struct {
	CurrentNode                                     Node
	InstallConfigOverrides, ReleaseImage            string
	ControlPlaneAgents, WorkerAgents, ArbiterAgents int
}

// Render returns what the operator makes of a ClusterInstance, in the order in which it is created. releaseImage is
// that of its ClusterImageSet.
func (c *ClusterInstance) Render(releaseImage string, templates ...corev1.ConfigMap) ([]*unstructured.Unstructured, error) {
	overrides, err := c.Spec.installConfig()
	if err != nil {
		return nil, err
	}
	values := data{Spec: c.Spec, SpecialVars: specialVars{InstallConfigOverrides: overrides, ReleaseImage: releaseImage}}
	values.SpecialVars.count(&c.Spec)
	objects, err := c.renderAll(&values, c.Spec.TemplateRefs, templates, nil)
	if err != nil {
		return nil, err
	}
	for i := range c.Spec.Nodes {
		values.SpecialVars.CurrentNode = c.Spec.Nodes[i]
		more, err := c.renderAll(&values, c.Spec.Nodes[i].TemplateRefs, templates, &c.Spec.Nodes[i])
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(wave(a), wave(b)) })
	return objects, nil
}

func wave(object *unstructured.Unstructured) int {
	number, _ := strconv.Atoi(object.GetAnnotations()[WaveAnnotation]) // 0 where there is none
	return number
}

func (v *specialVars) count(spec *Spec) {
	for i := range spec.Nodes {
		switch spec.Nodes[i].Role {
		case "master":
			v.ControlPlaneAgents++
		case "arbiter":
			v.ArbiterAgents++
		case "worker":
			if spec.ClusterType != "SNO" { // they join later
				v.WorkerAgents++
			}
		}
	}
}

// installConfig is the part of the install-config that is added to the generated one.
func (s *Spec) installConfig() (string, error) {
	overrides := map[string]any{}
	if s.InstallConfigOverrides != "" {
		if err := json.Unmarshal([]byte(s.InstallConfigOverrides), &overrides); err != nil {
			return "", fmt.Errorf("installConfigOverrides are no JSON: %w", err)
		}
	}
	if s.CPUPartitioning == "AllNodes" {
		overrides["cpuPartitioningMode"] = s.CPUPartitioning
	}
	networking, _ := overrides["networking"].(map[string]any)
	if networking == nil {
		networking = map[string]any{}
	}
	networking["networkType"] = s.NetworkType
	overrides["networking"] = networking
	content, err := json.Marshal(overrides)
	if err != nil {
		return "", fmt.Errorf("cannot encode installConfigOverrides: %w", err)
	}
	return string(content), nil
}

// renderAll executes the templates of the ConfigMaps that are referred to.
func (c *ClusterInstance) renderAll(values *data, references []Reference, templates []corev1.ConfigMap,
	node *Node,
) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, reference := range references {
		i := slices.IndexFunc(templates, func(t corev1.ConfigMap) bool { return t.Name == reference.Name && t.Namespace == reference.Namespace })
		if i < 0 {
			return nil, fmt.Errorf("there is no ConfigMap %s/%s", reference.Namespace, reference.Name)
		}
		for _, key := range slices.Sorted(maps.Keys(templates[i].Data)) {
			object, err := render(key, templates[i].Data[key], values)
			if err != nil {
				return nil, err
			}
			if object != nil && !c.suppressed(object.GetKind(), node) {
				c.mark(object, node)
				objects = append(objects, object)
			}
		}
	}
	return objects, nil
}

// render executes one template. The result is nil if the template renders nothing.
func render(key, text string, values *data) (*unstructured.Unstructured, error) {
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = func(value any) string {
		content, err := k8syaml.Marshal(value)
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(string(content), "\n")
	}
	parsed, err := template.New(key).Funcs(functions).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cannot parse template %s: %w", key, err)
	}
	var rendered bytes.Buffer
	if err := parsed.Execute(&rendered, values); err != nil {
		return nil, fmt.Errorf("cannot execute template %s: %w", key, err)
	}
	if len(bytes.TrimSpace(rendered.Bytes())) == 0 {
		return nil, nil //nolint:nilnil // nothing is no mistake
	}
	fields := map[string]any{}
	if err := yaml.Unmarshal(rendered.Bytes(), &fields); err != nil {
		return nil, fmt.Errorf("template %s renders no YAML: %w\n%s", key, err, rendered.String())
	}
	content, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", key, err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(content); err != nil {
		return nil, fmt.Errorf("template %s renders no object: %w", key, err)
	}
	return object, nil
}

func (c *ClusterInstance) suppressed(kind string, node *Node) bool {
	return slices.Contains(c.Spec.SuppressedManifests, kind) || node != nil && slices.Contains(node.SuppressedManifests, kind)
}

// mark adds the labels and annotations of the ClusterInstance for a kind, if the template sets no others, and the owner
// of the object.
func (c *ClusterInstance) mark(object *unstructured.Unstructured, node *Node) {
	annotations, labels := c.Spec.ExtraAnnotations[object.GetKind()], c.Spec.ExtraLabels[object.GetKind()]
	if node != nil {
		if own, found := node.ExtraAnnotations[object.GetKind()]; found {
			annotations = own
		}
		if own, found := node.ExtraLabels[object.GetKind()]; found {
			labels = own
		}
	}
	object.SetAnnotations(over(annotations, object.GetAnnotations()))
	object.SetLabels(over(map[string]string{OwnedByLabel: c.Namespace + "_" + c.Name}, over(labels, object.GetLabels())))
}

// over returns both maps as one; what is in upper counts.
func over(lower, upper map[string]string) map[string]string {
	both := maps.Clone(lower)
	if both == nil {
		both = map[string]string{}
	}
	maps.Copy(both, upper)
	return both
}
