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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Delete requests the deletion of the object that was read, and not of a new object of the same name. It
// sends no request if the object is being deleted, and returns no error if it is deleted already.
func Delete(ctx context.Context, c client.Writer, obj client.Object) error {
	if !obj.GetDeletionTimestamp().IsZero() {
		return nil
	}
	if err := c.Delete(ctx, obj, client.Preconditions{UID: ptr.To(obj.GetUID())}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete %s %s: %w", KindName(obj), obj.GetName(), err)
	}
	return nil
}

// Annotate sets annotations of the object that was read, and not of a new object of the same name. The API server refuses
// a patch with another UID. A nil value removes an annotation, whichever client owns it: after a restore another client
// does. It returns no error if the object is deleted. obj becomes the response of the API server.
func Annotate(
	ctx context.Context, c client.Writer, obj client.Object, annotations map[string]*string, owner client.FieldOwner,
) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": obj.GetUID(), "annotations": annotations}})
	if err != nil {
		return fmt.Errorf("cannot encode annotations: %w", err)
	}
	if err := c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), owner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot annotate %s %s: %w", KindName(obj), obj.GetName(), err)
	}
	return nil
}

// PatchMetadata writes the differences between before and after, if no other client has written to the object
// since before was read. A merge patch replaces lists (finalizers, owner references) as a whole. Labels and
// annotations that before lacks stay, because the cache does not keep all of them. after becomes the response
// of the API server. Without a difference no request is sent.
func PatchMetadata(ctx context.Context, c client.Writer, before, after client.Object, owner client.FieldOwner) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	return c.Patch(ctx, after, metadataPatch{client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), before}, owner)
}

// metadataPatch is a merge patch that removes labels and annotations one by one. If after has none left, a
// merge patch of two objects would remove all stored ones.
type metadataPatch struct {
	client.Patch
	before client.Object
}

// Data returns the patch from before to after.
func (p metadataPatch) Data(after client.Object) ([]byte, error) {
	data, err := p.Patch.Data(after)
	if err != nil {
		return nil, err //nolint:wrapcheck // the patch could not be encoded
	}
	patch := map[string]any{}
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err //nolint:wrapcheck // the patch was just encoded
	}
	for field, had := range map[string]map[string]string{"annotations": p.before.GetAnnotations(), "labels": p.before.GetLabels()} {
		if value, named, _ := unstructured.NestedFieldNoCopy(patch, "metadata", field); !named || value != nil {
			continue
		}
		removed := map[string]any{}
		for key := range had {
			removed[key] = nil
		}
		if err := unstructured.SetNestedField(patch, removed, "metadata", field); err != nil {
			return nil, err //nolint:wrapcheck // cannot fail: the patch has metadata
		}
	}
	return json.Marshal(patch)
}

// IsRefused reports whether the API server refused the content of a request, by its schema or by an admission
// webhook. An immediate retry does not help then. A missing right does not count: it can be granted at any
// time, as the rights of an aggregated ClusterRole are.
func IsRefused(err error) bool {
	if err == nil {
		return false
	}
	denied := strings.Contains(err.Error(), "admission webhook") && strings.Contains(err.Error(), "denied the request")
	return denied || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || UndeclaredField(err) != ""
}

// QuotaExceeded reports whether the API server refused to create an object because a ResourceQuota is
// exhausted. The admission plugin gives this refusal no cause of its own (kubernetes/apiserver,
// pkg/admission/plugin/resourcequota/controller.go, checkRequest).
func QuotaExceeded(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: ")
}

// ownersRefused is the error of the admission plugin OwnerReferencesPermissionEnforcement, which OpenShift
// enables. The plugin refuses changes of the owner references of an existing object
// (kubernetes/plugin/pkg/admission/gc/gc_admission.go).
const ownersRefused = "cannot set an ownerRef on a resource you can't delete"

// OwnersRefused reports whether the API server refused a request only because it changes the owner references
// of an object that the client may not delete.
func OwnersRefused(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), ownersRefused)
}

// undeclaredField matches the error of server-side apply for a field that the schema of a kind does not have
// (structured-merge-diff, typed/validate.go). The API server gives it no reason of its own.
var undeclaredField = regexp.MustCompile(`\.([^\s:]+): field not declared in schema`)

// UndeclaredField returns the first field (spec.some.field) that the API server refused because the schema of
// the kind does not have it. It returns "" for any other error.
func UndeclaredField(err error) (field string) {
	if err == nil {
		return ""
	}
	if found := undeclaredField.FindStringSubmatch(err.Error()); found != nil {
		return found[1]
	}
	return ""
}
