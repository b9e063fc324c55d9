package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PatchStatus writes the status of after with one request if it differs from that of before. Use it for an
// object whose status has one writer: lists (conditions) are written as a whole. A deleted object is no
// error. The patch of an object that is being deleted requires the resource version of before. Otherwise the
// status could reach a new object of the same name.
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
	// The response of the API server must not overwrite after, which the caller still uses.
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
