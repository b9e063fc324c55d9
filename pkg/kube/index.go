package kube

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Index makes the objects of a kind be found in the cache by a field.
type Index struct {
	Object client.Object
	Field  string
	Values client.IndexerFunc
}

// AddIndexes adds indexes to the cache.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer, indexes ...Index) error {
	for _, i := range indexes {
		if err := indexer.IndexField(ctx, i.Object, i.Field, i.Values); err != nil {
			return fmt.Errorf("cannot index %T by %s: %w", i.Object, i.Field, err)
		}
	}
	return nil
}

// IndexOf is the index of a type by a field, of which values returns the values.
func IndexOf[T client.Object](object T, field string, values func(T) []string) Index {
	return Index{Object: object, Field: field, Values: func(obj client.Object) []string {
		if typed, ok := obj.(T); ok {
			return values(typed)
		}
		return nil
	}}
}

// Some leaves out the values that are empty: nothing is found by them.
func Some(values ...string) []string {
	var some []string
	for _, value := range values {
		if value != "" {
			some = append(some, value)
		}
	}
	return some
}
