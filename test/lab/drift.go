package lab

import (
	"context"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Drift names the objects of the sample that would change if a field manager applied them as they were applied in the
// beginning: what somebody wrote since into fields that are the user's.
func (c *Cluster) Drift(ctx context.Context, manager string) ([]string, error) {
	var drifted []string
	for _, object := range c.applied {
		live, again := &unstructured.Unstructured{}, object.DeepCopy()
		live.SetGroupVersionKind(object.GroupVersionKind())
		if err := c.lab.Client().Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
			return nil, fmt.Errorf("cannot read what was applied: %w", err)
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

// difference is what of an object changes, beside who owns which field; empty when nothing does.
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
