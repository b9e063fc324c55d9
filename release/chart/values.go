package chart

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// parameterize replaces fields of a provider's Deployment with values of the chart, and writes the contents of
// the fields to the default values.
func (c *Chart) parameterize(p Provider, deployment map[string]any) error {
	spec, err := mapAt(deployment, "spec")
	if err != nil {
		return err
	}
	pod, err := mapAt(spec, "template", "spec")
	if err != nil {
		return err
	}
	metadata, err := mapAt(spec, "template", "metadata")
	if err != nil {
		return err
	}
	containers, _, _ := unstructured.NestedSlice(pod, "containers")
	if len(containers) != 1 {
		return fmt.Errorf("the Deployment has %d containers, not one", len(containers))
	}
	manager := containers[0].(map[string]any)
	flags, err := flagsOf(manager)
	if err != nil {
		return err
	}
	defaults, err := imageValues(fmt.Sprint(manager["image"]))
	if err != nil {
		return err
	}
	maps.Copy(defaults, map[string]any{
		"image.pullPolicy": manager["imagePullPolicy"], "replicas": spec["replicas"], "flags": flags, "resources": manager["resources"],
		"tolerations": pod["tolerations"], "podAnnotations": metadata["annotations"],
	})
	if err := c.setDefaults(p, defaults); err != nil {
		return err
	}
	value := func(form, field string) string { return expression(form, ".Values."+p.Values+"."+field) }
	spec["replicas"] = value("", "replicas")
	metadata["annotations"] = value(optional, "podAnnotations")
	for _, field := range []string{"nodeSelector", "tolerations", "affinity", "priorityClassName"} {
		pod[field] = value(optional, field)
	}
	pod["imagePullSecrets"] = expression(optional, ".Values.imagePullSecrets")
	manager["image"] = expression("", `include "openshift-agent.image" .Values.`+p.Values+".image")
	manager["imagePullPolicy"] = value("", "image.pullPolicy")
	manager["args"] = expression(lines, `include "openshift-agent.args" (dict "provider" .Values.`+p.Values+` "values" .Values)`)
	manager["resources"] = value(optional, "resources")
	environment, _ := manager["env"].([]any)
	manager["env"] = append(environment, value(further, "env"))
	for field, parent := range map[string]map[string]any{"env": manager, "volumeMounts": manager, "volumes": pod} {
		addItems(p, parent, field)
	}
	pod["containers"] = containers
	return addSpread(p, spec, pod)
}

// addItems adds the items to a list that the values of a provider require: those for the authorities that it trusts, and
// its volumes. A list without other items is left out when the values require none.
func addItems(p Provider, parent map[string]any, field string) {
	items := `include "openshift-agent.` + field + `" (dict "provider" .Values.` + p.Values + ` "values" .Values) | fromYamlArray`
	if list, _ := parent[field].([]any); len(list) > 0 {
		parent[field] = append(list, expression(further, items))
		return
	}
	parent[field] = expression(optional, items)
}

// mapAt returns the map at a path of an object. Changes of the map change the object.
func mapAt(object map[string]any, fields ...string) (map[string]any, error) {
	found, _, err := unstructured.NestedFieldNoCopy(object, fields...)
	at, ok := found.(map[string]any)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the Deployment has no %s", strings.Join(fields, ".")), err)
	}
	return at, nil
}

// withDefault matches a variable of the components with a default, which clusterctl uses when the user gives no
// value.
var withDefault = regexp.MustCompile(`\$\{[A-Z_]+:=([^}]*)\}`)

// inPlaceFlag is not among the flags of the values: the value inPlaceUpdates sets it together with other
// objects.
const inPlaceFlag = "in-place-updates"

// flagsOf returns the flags of a container with their values.
func flagsOf(container map[string]any) (map[string]any, error) {
	args, _, err := unstructured.NestedStringSlice(container, "args")
	if err != nil {
		return nil, fmt.Errorf("cannot read the arguments of the manager: %w", err)
	}
	flags := map[string]any{}
	for _, arg := range args {
		name, text, given := strings.Cut(strings.TrimPrefix(withDefault.ReplaceAllString(arg, "$1"), "--"), "=")
		if !given {
			text = "true"
		}
		var value any = text
		if text == "true" || text == "false" {
			value = text == "true"
		}
		if name != inPlaceFlag {
			flags[name] = value
		}
	}
	return flags, nil
}

// setDefaults writes values of a provider, keyed by path, to the document with the default values.
func (c *Chart) setDefaults(p Provider, values map[string]any) error {
	for path, value := range values {
		place := c.values.Content[0]
		for _, key := range strings.Split(p.Values+"."+path, ".") {
			if place = child(place, key); place == nil {
				return fmt.Errorf("the values of the chart have no %s.%s", p.Values, path)
			}
		}
		comment := place.LineComment
		if err := place.Encode(value); err != nil {
			return fmt.Errorf("cannot write %s.%s into the values of the chart: %w", p.Values, path, err)
		}
		place.LineComment = comment
	}
	return nil
}

// child returns the value of a key of a mapping, or nil.
func child(mapping *yamlv3.Node, key string) *yamlv3.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// imageValues returns the values for an image: repository, tag and digest.
func imageValues(image string) (map[string]any, error) {
	reference, err := name.ParseReference(image, name.StrictValidation)
	if err != nil {
		return nil, fmt.Errorf("cannot read the image of the Deployment: %w", err)
	}
	values := map[string]any{"image.repository": reference.Context().Name(), "image.tag": "", "image.digest": ""}
	if _, byDigest := reference.(name.Digest); byDigest {
		values["image.digest"] = reference.Identifier()
	} else {
		values["image.tag"] = reference.Identifier()
	}
	return values, nil
}
