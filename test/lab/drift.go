package lab

import (
	"context"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Drift returns the objects of the sample that a field manager would change by applying them again in their original
// form. Such an object has fields of the user that other clients have changed since.
func (c *Cluster) Drift(ctx context.Context, manager string) ([]string, error) {
	var drifted []string
	for _, object := range c.applied {
		live, again := &unstructured.Unstructured{}, object.DeepCopy()
		live.SetGroupVersionKind(object.GroupVersionKind())
		if err := c.lab.Client().Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
			return nil, fmt.Errorf("cannot read the applied object: %w", err)
		}
		err := c.lab.Client().Apply(ctx, client.ApplyConfigurationFromUnstructured(again), client.FieldOwner(manager),
			client.ForceOwnership, client.DryRunAll)
		if err != nil {
			return nil, fmt.Errorf("cannot apply %s %s again: %w", object.GetKind(), object.GetName(), err)
		}
		change, err := difference(live, again)
		if err != nil {
			return nil, err
		}
		if change != "" {
			drifted = append(drifted, fmt.Sprintf("%s %s: %s", object.GetKind(), object.GetName(), change))
		}
	}
	return drifted, nil
}

// difference returns the changes of an object except ownership of fields, or "".
func difference(before, after *unstructured.Unstructured) (string, error) {
	var versions [2][]byte
	for i, object := range []*unstructured.Unstructured{before, after} {
		object.SetManagedFields(nil)
		content, err := object.MarshalJSON()
		if err != nil {
			return "", fmt.Errorf("cannot write %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		versions[i] = content
	}
	patch, err := jsonpatch.CreateMergePatch(versions[0], versions[1])
	if err != nil {
		return "", fmt.Errorf("cannot compare %s %s: %w", before.GetKind(), before.GetName(), err)
	}
	if string(patch) == "{}" {
		return "", nil
	}
	return string(patch), nil
}
