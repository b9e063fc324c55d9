// Package kube reads, writes and indexes objects for both providers, and classifies the errors of the API
// server.
package kube

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Read reads an object, stores it in into and returns it. It returns nil and no error if the object does not exist.
func Read[T client.Object](ctx context.Context, from client.Reader, key client.ObjectKey, into T) (T, error) {
	var none T
	err := from.Get(ctx, key, into)
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("cannot read %s %s: %w", KindName(into), key, err)
	}
	return into, nil
}

// Exists reports whether an object still exists, and was not replaced by a new object of the same name.
func Exists[T client.Object](ctx context.Context, from client.Reader, obj, into T) (bool, error) {
	now, err := Read(ctx, from, client.ObjectKeyFromObject(obj), into)
	return err == nil && !IsNil(now) && now.GetUID() == obj.GetUID(), err
}

// KindName returns the kind of an object for messages. Typed objects often have an empty kind.
func KindName(obj client.Object) string {
	if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.TypeOf(obj).Elem().Name()
}

// IsNil reports whether an interface, or the pointer in it, is nil.
func IsNil(obj client.Object) bool {
	return obj == nil || reflect.ValueOf(obj).IsNil()
}

// VersionOf returns the resource version of an object; "" if the object is nil.
func VersionOf(obj client.Object) string {
	if IsNil(obj) {
		return ""
	}
	return obj.GetResourceVersion()
}

// EmptyOf returns an object of the same kind without content, as the target of a read.
func EmptyOf(obj *unstructured.Unstructured) *unstructured.Unstructured {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(obj.GroupVersionKind())
	return empty
}
