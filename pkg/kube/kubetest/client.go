package kubetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// BuildClient builds a fake client with a scheme and interceptors. Its server-side apply stores the applied fields as an
// API server does. The fake client of controller-runtime v0.24 adds the stored status and the zero values of the Go type
// to the applied fields. It also changes the resource version even if nothing changes, and removes an object that is
// being deleted. Here the resource version changes exactly if the object does, managed fields included. An
// applied resource version has to be the stored one.
func BuildClient(builder *fake.ClientBuilder, scheme *runtime.Scheme, funcs interceptor.Funcs) client.WithWatch {
	known := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(known))
	tracker := testing.NewFieldManagedObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder(), anyType{
		applyconfigurations.NewTypeConverter(known), managedfields.NewDeducedTypeConverter(),
	})
	applying := interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return apply(tracker, obj, (&client.ApplyOptions{}).ApplyOptions(opts))
		},
	}
	built := builder.WithScheme(scheme).WithObjectTracker(tracker).Build()
	return interceptor.NewClient(interceptor.NewClient(built, applying), funcs)
}

// apply applies obj, and stores the result into obj.
func apply(tracker testing.ObjectTracker, obj runtime.ApplyConfiguration, options *client.ApplyOptions) error {
	content, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	applied := &unstructured.Unstructured{}
	if err := applied.UnmarshalJSON(content); err != nil {
		return err
	}
	kind := applied.GroupVersionKind()
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	if len(options.DryRun) > 0 {
		return nil
	}
	before, err := tracker.Get(resource, applied.GetNamespace(), applied.GetName())
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err := staleness(applied, before); err != nil {
		return err
	}
	version, err := nextVersion(before)
	if err != nil {
		return err
	}
	applied.SetResourceVersion(version)
	if err := tracker.Apply(resource, applied, applied.GetNamespace(), *options.AsPatchOptions()); err != nil {
		return err
	}
	stored, err := tracker.Get(resource, applied.GetNamespace(), applied.GetName())
	if err != nil {
		return err
	}
	if before != nil && equality.Semantic.DeepEqual(unversioned(before), unversioned(stored)) {
		if err := tracker.Update(resource, before, applied.GetNamespace()); err != nil {
			return err
		}
		stored = before
	}
	result, ok := obj.(runtime.Unstructured)
	if !ok {
		return fmt.Errorf("%T is not unstructured", obj)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
	if err != nil {
		return err
	}
	result.SetUnstructuredContent(fields)
	result.GetObjectKind().SetGroupVersionKind(kind)
	return nil
}

// staleness returns the conflict of an applied object with the resource version of an earlier state.
func staleness(applied *unstructured.Unstructured, stored runtime.Object) error {
	if stored == nil || applied.GetResourceVersion() == "" {
		return nil
	}
	metadata, err := meta.Accessor(stored)
	if err != nil || metadata.GetResourceVersion() == applied.GetResourceVersion() {
		return err
	}
	return apierrors.NewConflict(schema.GroupResource{Group: applied.GroupVersionKind().Group, Resource: applied.GetKind()},
		applied.GetName(), errors.New("object was modified"))
}

// nextVersion returns the resource version of an object after its next change; the first one if the object is nil.
func nextVersion(of runtime.Object) (string, error) {
	version := 0
	if of != nil {
		metadata, err := meta.Accessor(of)
		if err != nil {
			return "", err
		}
		if version, err = strconv.Atoi(metadata.GetResourceVersion()); err != nil {
			return "", fmt.Errorf("resource version of %s: %w", metadata.GetName(), err)
		}
	}
	return strconv.Itoa(version + 1), nil
}

// unversioned returns a copy of an object without resource version and without the times of its managed fields.
func unversioned(obj runtime.Object) runtime.Object {
	kept := obj.DeepCopyObject()
	if metadata, err := meta.Accessor(kept); err == nil {
		metadata.SetResourceVersion("")
		fields := metadata.GetManagedFields()
		for i := range fields {
			fields[i].Time = nil
		}
		metadata.SetManagedFields(fields)
	}
	return kept
}

// anyType converts objects with the first converter that knows their type.
type anyType []managedfields.TypeConverter

// ObjectToTyped implements managedfields.TypeConverter.
func (t anyType) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	var failures []error
	for _, converter := range t {
		converted, err := converter.ObjectToTyped(obj, options...)
		if err == nil {
			return converted, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

// TypedToObject implements managedfields.TypeConverter.
func (t anyType) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	var failures []error
	for _, converter := range t {
		converted, err := converter.TypedToObject(value)
		if err == nil {
			return converted, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}
