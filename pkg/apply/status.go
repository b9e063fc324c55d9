package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PatchStatus writes the status of after when it differs from that of before, with one request. It is for the one
// reconciler that writes the status: lists (conditions) are written whole. An object that is gone is no error. Of one
// that is deleted before must be the newest version: it may be gone for others than the cache, and the status would be
// that of another object of its name.
func PatchStatus(ctx context.Context, c client.Client, before, after client.Object) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	patch := client.MergeFrom(before)
	data, err := patch.Data(after)
	if err != nil {
		return fmt.Errorf("cannot compute the patch of the status of %s: %w", client.ObjectKeyFromObject(after), err)
	}
	if string(data) == "{}" {
		return nil
	}
	if !before.GetDeletionTimestamp().IsZero() {
		if data, err = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}).Data(after); err != nil {
			return fmt.Errorf("cannot compute the patch of the status of %s: %w", client.ObjectKeyFromObject(after), err)
		}
	}
	// The answer of the API server must not overwrite after: callers go on with it.
	target, ok := after.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("cannot copy %T", after)
	}
	err = c.Status().Patch(ctx, target, client.RawPatch(patch.Type(), data))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot patch the status of %s: %w", client.ObjectKeyFromObject(after), err)
	}
	return nil
}
