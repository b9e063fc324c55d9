package kube

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Index is an index of the cache: objects of a kind by the values of a field.
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

// IndexOf returns the index of a type by a field, with a function that returns the values of the field.
func IndexOf[T client.Object](object T, field string, values func(T) []string) Index {
	return Index{Object: object, Field: field, Values: func(obj client.Object) []string {
		if typed, ok := obj.(T); ok {
			return values(typed)
		}
		return nil
	}}
}

// NonEmpty returns the values that are not empty, because an index by "" is useless.
func NonEmpty(values ...string) []string {
	var nonEmpty []string
	for _, value := range values {
		if value != "" {
			nonEmpty = append(nonEmpty, value)
		}
	}
	return nonEmpty
}
