package kubetest

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Late returns a client that reads as from a cache which does not know of any object of a kind yet; all else is as in c.
func Late[T client.Object, L client.ObjectList](c client.Client) client.Client { return late[T, L]{c} }

type late[T client.Object, L client.ObjectList] struct{ client.Client }

// Get implements client.Reader.
func (l late[T, L]) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, unknown := obj.(T); unknown {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return l.Client.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (l late[T, L]) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := l.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	if _, unknown := list.(L); unknown {
		return meta.SetList(list, nil)
	}
	return nil
}

// Behind returns a client that reads as from a cache which still has an object that is gone, in the place of each of
// its kind; all else is as in c. deepCopyInto is the method of its type.
func Behind[T client.Object](c client.Client, gone T, deepCopyInto func(from, into T)) client.Client {
	return behind[T]{c, gone, deepCopyInto}
}

type behind[T client.Object] struct {
	client.Client

	gone         T
	deepCopyInto func(from, into T)
}

// Get implements client.Reader.
func (b behind[T]) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if into, same := obj.(T); same {
		b.deepCopyInto(b.gone, into)
		return nil
	}
	return b.Client.Get(ctx, key, obj, opts...)
}
