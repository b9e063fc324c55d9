package kube

import (
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Tracker returns a function that makes a controller watch a kind, once. The kind may not exist when the manager
// starts.
func Tracker(from cache.Cache, c controller.Controller, mapped handler.MapFunc, changes predicate.Predicate) func(client.Object) error {
	var (
		mu      sync.Mutex
		watched = map[string]bool{}
	)
	return func(of client.Object) error {
		mu.Lock()
		defer mu.Unlock()
		kind := of.GetObjectKind().GroupVersionKind().String()
		if watched[kind] {
			return nil
		}
		if err := c.Watch(source.Kind(from, of, handler.EnqueueRequestsFromMapFunc(mapped), changes)); err != nil {
			return fmt.Errorf("cannot watch %s: %w", kind, err)
		}
		watched[kind] = true
		return nil
	}
}
