package config

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// cached returns a client that reads as from the cache of the manager: objects lack what is not kept of them.
func cached(c client.WithWatch) client.Client {
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

// trim makes of an object what is cached of its kind. Secrets and ConfigMaps as a whole are not read from the cache.
func trim(obj runtime.Object) error {
	transform := TrimInfraMachine
	for kind, options := range Cached() {
		if reflect.TypeOf(kind) == reflect.TypeOf(obj) {
			transform = options.Transform
		}
	}
	kept, err := transform(obj)
	if err == nil {
		reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(kept).Elem())
	}
	return err
}
