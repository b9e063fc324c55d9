package lightapi

import (
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	partialKind     = "PartialObjectMetadata"
	partialListKind = "PartialObjectMetadataList"
)

// view is the form of objects in a response: complete or metadata only.
type view struct{ metadata bool }

var _ negotiation.EndpointRestrictions = view{}

// AllowsMediaTypeTransform permits requests for metadata.
func (view) AllowsMediaTypeTransform(_, _ string, target *schema.GroupVersionKind) bool {
	return target == nil || target.GroupVersion() == metav1.SchemeGroupVersion &&
		(target.Kind == partialKind || target.Kind == partialListKind)
}

// AllowsServerVersion permits no other version.
func (view) AllowsServerVersion(string) bool { return false }

// AllowsStreamSchema permits watches.
func (view) AllowsStreamSchema(schema string) bool { return schema == "watch" }

// negotiate returns the kind of a request and the requested view.
func negotiate(r *http.Request, info *request.RequestInfo) (*kind, view, error) {
	resource := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	k := kinds[resource]
	if k == nil {
		return nil, view{}, apierrors.NewGenericServerResponse(http.StatusNotFound, info.Verb, resource.GroupResource(), info.Name, "", 0, true)
	}
	wanted, _, err := negotiation.NegotiateOutputMediaType(r, codecs, view{})
	return k, view{metadata: wanted.Convert != nil}, err
}

// of returns the view of an object.
func (v view) of(object runtime.Object) runtime.Object {
	full, ok := object.(client.Object)
	if !ok || !v.metadata {
		return object
	}
	partial := meta.AsPartialObjectMetadata(full)
	partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind(partialKind))
	return partial
}

// list returns the view of a list.
func (v view) list(k *kind, objects []client.Object, version int) (runtime.Object, error) {
	var list client.ObjectList = &metav1.PartialObjectMetadataList{}
	gvk := metav1.SchemeGroupVersion.WithKind(partialListKind)
	if !v.metadata {
		gvk = k.GroupVersion().WithKind(k.Kind + "List")
		made, err := scheme.New(gvk)
		if err != nil {
			return nil, err
		}
		list = made.(client.ObjectList) //nolint:forcetypeassert // all kinds with this suffix are lists
	}
	list.GetObjectKind().SetGroupVersionKind(gvk)
	list.SetResourceVersion(strconv.Itoa(version))
	items := make([]runtime.Object, 0, len(objects))
	for _, object := range objects {
		items = append(items, v.of(object))
	}
	return list, meta.SetList(list, items)
}
