// Package kubetest simulates the cache of a manager in tests.
package kubetest

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Cached returns a client that reads like the cache of a manager: objects are trimmed by the transform of
// their kind. others is the transform of all kinds that are not listed.
func Cached(c client.WithWatch, kinds map[client.Object]cache.ByObject, others toolscache.TransformFunc) client.WithWatch {
	trim := func(obj runtime.Object) error {
		transform := others
		for kind, options := range kinds {
			if sameKind(kind, obj) {
				transform = options.Transform
			}
		}
		kept, err := transform(obj)
		if err == nil {
			reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(kept).Elem())
		}
		return err
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := c.Get(ctx, key, obj, opts...); err != nil {
				return err
			}
			return trim(obj)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := c.List(ctx, list, opts...); err != nil {
				return err
			}
			return meta.EachListItem(list, trim)
		},
	})
}

// ListByFieldOnly returns a client whose cache has no index of namespaces: to list a whole namespace fails.
func ListByFieldOnly(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			options := client.ListOptions{}
			if options.ApplyOptions(opts); options.Namespace != "" && options.FieldSelector == nil {
				return fmt.Errorf("the cache cannot list %T by namespace", list)
			}
			return c.List(ctx, list, opts...)
		},
	})
}

// sameKind reports whether an object is of a kind. Of some kinds only the metadata is read.
func sameKind(kind client.Object, obj runtime.Object) bool {
	if metadata, ok := obj.(*metav1.PartialObjectMetadata); ok {
		if named, ok := kind.(*metav1.PartialObjectMetadata); ok {
			return named.Kind == metadata.Kind
		}
		return reflect.TypeOf(kind).Elem().Name() == metadata.Kind
	}
	return reflect.TypeOf(kind) == reflect.TypeOf(obj)
}
