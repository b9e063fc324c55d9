package kubetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Undeletable are the kinds that a client may not delete on a hub whose API server has the admission plugin
// OwnerReferencesPermissionEnforcement.
type Undeletable []string

// Patch returns the error with which such an API server refuses a merge patch. It refuses patches that change
// the owner references of an existing object.
func (u Undeletable) Patch(ctx context.Context, c client.Client, obj client.Object, patch client.Patch) error {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil || !slices.Contains(u, gvk.Kind) || patch.Type() != types.MergePatchType {
		return err
	}
	content, err := patch.Data(obj)
	if err != nil {
		return err
	}
	return u.refuse(
		ctx,
		c,
		gvk,
		client.ObjectKeyFromObject(obj),
		content,
		func(have, wanted []metav1.OwnerReference) bool { return !equality.Semantic.DeepEqual(have, wanted) },
	)
}

// Apply is Patch for server-side apply, which adds owner references.
func (u Undeletable) Apply(ctx context.Context, c client.Client, applied runtime.ApplyConfiguration) error {
	content, err := json.Marshal(applied)
	if err != nil {
		return err
	}
	obj := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(content, obj); err != nil || !slices.Contains(u, obj.Kind) {
		return err
	}
	return u.refuse(ctx, c, obj.GroupVersionKind(), client.ObjectKeyFromObject(obj), content, func(have, wanted []metav1.OwnerReference) bool {
		return slices.ContainsFunc(wanted, func(w metav1.OwnerReference) bool {
			return !slices.ContainsFunc(have, func(h metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(h, w) })
		})
	})
}

func (u Undeletable) refuse(
	ctx context.Context,
	c client.Client,
	gvk schema.GroupVersionKind,
	key client.ObjectKey,
	content []byte,
	changes func(have, wanted []metav1.OwnerReference) bool,
) error {
	var wanted struct {
		Metadata struct {
			OwnerReferences *[]metav1.OwnerReference `json:"ownerReferences"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(content, &wanted); err != nil || wanted.Metadata.OwnerReferences == nil {
		return err
	}
	current := &metav1.PartialObjectMetadata{}
	current.SetGroupVersionKind(gvk)
	if err := c.Get(ctx, key, current); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !changes(current.OwnerReferences, *wanted.Metadata.OwnerReferences) {
		return nil
	}
	return apierrors.NewForbidden(
		schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind},
		key.Name,
		errors.New("cannot set an ownerRef on a resource you can't delete: , <nil>"),
	) // as the plugin writes it
}
