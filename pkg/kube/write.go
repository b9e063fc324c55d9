package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Delete asks once for the deletion of the object that was read, not of a later one of its name. One that is gone, or
// is being deleted, is no error.
func Delete(ctx context.Context, c client.Writer, obj client.Object) error {
	if !obj.GetDeletionTimestamp().IsZero() {
		return nil
	}
	if err := c.Delete(ctx, obj, client.Preconditions{UID: ptr.To(obj.GetUID())}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete %s %s: %w", KindName(obj), obj.GetName(), err)
	}
	return nil
}

// PatchMetadata writes what differs between before and after, on condition that nobody else has written to the object
// since before was read: a merge patch replaces lists (finalizers, owner references) as a whole. Of labels and
// annotations before may lack some, as the cache does: they stay. after gets the answer of the API server, which is not
// asked when nothing differs.
func PatchMetadata(ctx context.Context, c client.Writer, before, after client.Object, owner client.FieldOwner) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	return c.Patch(ctx, after, metadataPatch{client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), before}, owner)
}

// metadataPatch is a merge patch that takes off labels and annotations one by one. Where after has none of them left, a
// merge patch of two objects takes off all that are stored.
type metadataPatch struct {
	client.Patch
	before client.Object
}

// Data is the patch that makes before the given object.
func (p metadataPatch) Data(after client.Object) ([]byte, error) {
	data, err := p.Patch.Data(after)
	if err != nil {
		return nil, err //nolint:wrapcheck // of encoding
	}
	patch := map[string]any{}
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err //nolint:wrapcheck // of decoding what was just encoded
	}
	for field, had := range map[string]map[string]string{"annotations": p.before.GetAnnotations(), "labels": p.before.GetLabels()} {
		if value, named, _ := unstructured.NestedFieldNoCopy(patch, "metadata", field); !named || value != nil {
			continue
		}
		off := map[string]any{}
		for key := range had {
			off[key] = nil
		}
		if err := unstructured.SetNestedField(patch, off, "metadata", field); err != nil {
			return nil, err //nolint:wrapcheck // of a patch without metadata, which this one has
		}
	}
	return json.Marshal(patch)
}

// Refused reports whether the API server refused a request for what it says, by its schema or by an admission webhook:
// to repeat it at once does not help. A right that is missing is none of that: it may be given at any time, as the
// rights of an aggregated ClusterRole are.
func Refused(err error) bool {
	if err == nil {
		return false
	}
	denied := strings.Contains(err.Error(), "admission webhook") && strings.Contains(err.Error(), "denied the request")
	return denied || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || Undeclared(err) != ""
}

// ownersRefused is how the admission plugin OwnerReferencesPermissionEnforcement, which OpenShift has, refuses other
// owner references of an object that exists (kubernetes/plugin/pkg/admission/gc/gc_admission.go).
const ownersRefused = "cannot set an ownerRef on a resource you can't delete"

// OwnersRefused reports whether the API server refused a request only because it changes the owner references of an
// object that the client may not delete.
func OwnersRefused(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), ownersRefused)
}

// undeclared is how server-side apply refuses a field that the schema of a kind does not have (structured-merge-diff,
// typed/validate.go). The answer has no reason of its own.
var undeclared = regexp.MustCompile(`\.([^\s:]+): field not declared in schema`)

// Undeclared is the field (spec.some.field) for which the API server refused what was applied, as its schema of the
// kind does not have it; of several it names one. It is empty when the error is another.
func Undeclared(err error) (field string) {
	if err == nil {
		return ""
	}
	if found := undeclared.FindStringSubmatch(err.Error()); found != nil {
		return found[1]
	}
	return ""
}
