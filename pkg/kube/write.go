package kube

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Delete asks once for the deletion of the object that was read, not of a later one of its name. One that is gone, or is being deleted, is no error.
func Delete(ctx context.Context, c client.Writer, obj client.Object) error {
	if !obj.GetDeletionTimestamp().IsZero() {
		return nil
	}
	if err := c.Delete(ctx, obj, client.Preconditions{UID: ptr.To(obj.GetUID())}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete %s %s: %w", nameOf(obj), obj.GetName(), err)
	}
	return nil
}

// PatchMetadata writes what differs between before and after, on condition that nobody else has written to the object since before was read: a merge patch replaces
// lists (finalizers, owner references) as a whole. after gets the answer of the API server, which is not asked when nothing differs.
func PatchMetadata(ctx context.Context, c client.Writer, before, after client.Object, owner client.FieldOwner) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	return c.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), owner)
}

// Refused tells whether the API server refused a request for what it says, by its schema or by an admission webhook: to repeat it at once does not help. A right
// that is missing is none of that: it may be given at any time, as the rights of an aggregated ClusterRole are.
func Refused(err error) bool {
	if err == nil {
		return false
	}
	denied := strings.Contains(err.Error(), "admission webhook") && strings.Contains(err.Error(), "denied the request")
	return denied || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}
