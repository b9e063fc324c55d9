package kubetest

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// EmptyCacheOf returns a client whose cache has no object of type T yet. It reads all other kinds from c.
func EmptyCacheOf[T client.Object, L client.ObjectList](c client.Client) client.Client {
	return emptyCache[T, L]{c}
}

type emptyCache[T client.Object, L client.ObjectList] struct{ client.Client }

// Get implements client.Reader.
func (l emptyCache[T, L]) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, unknown := obj.(T); unknown {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return l.Client.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (l emptyCache[T, L]) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := l.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	if _, unknown := list.(L); unknown {
		return meta.SetList(list, nil)
	}
	return nil
}

// StaleCacheOf returns a client whose cache returns a deleted object for each key of its type. It reads all
// other kinds from c. deepCopyInto is the method of the type.
func StaleCacheOf[T client.Object](c client.Client, deleted T, deepCopyInto func(from, into T)) client.Client {
	return staleCache[T]{c, deleted, deepCopyInto}
}

type staleCache[T client.Object] struct {
	client.Client

	deleted      T
	deepCopyInto func(from, into T)
}

// Get implements client.Reader.
func (b staleCache[T]) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if into, same := obj.(T); same {
		b.deepCopyInto(b.deleted, into)
		return nil
	}
	return b.Client.Get(ctx, key, obj, opts...)
}
