// Package kube is how both providers read, delete and index objects, and understand what the API server answers.
package kube

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Read reads an object into into, and returns it; nil, and no error, when it does not exist.
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

// IsThere reports whether an object is still there, by what from reads, and not another one of its name in its place.
func IsThere[T client.Object](ctx context.Context, from client.Reader, obj, into T) (bool, error) {
	now, err := Read(ctx, from, client.ObjectKeyFromObject(obj), into)
	return err == nil && !IsNil(now) && now.GetUID() == obj.GetUID(), err
}

// KindName is the kind of an object for people. A typed object does not always bear its kind.
func KindName(obj client.Object) string {
	if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.TypeOf(obj).Elem().Name()
}

// IsNil reports whether there is no object: neither the interface nor the pointer in it.
func IsNil(obj client.Object) bool {
	return obj == nil || reflect.ValueOf(obj).IsNil()
}

// VersionOf is the resource version of an object; "" when there is no object.
func VersionOf(obj client.Object) string {
	if IsNil(obj) {
		return ""
	}
	return obj.GetResourceVersion()
}

// EmptyOf returns an object of the same kind without content, to read into.
func EmptyOf(obj *unstructured.Unstructured) *unstructured.Unstructured {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(obj.GroupVersionKind())
	return empty
}
