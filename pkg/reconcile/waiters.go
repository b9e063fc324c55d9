package reconcile

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// Waiters records the values that configs wait for, where no index leads from a value to the configs. Such a value
// is a MAC address of the host, which an Agent has that booted another config's image. Another value is the name
// of the Node, until the Machine that has the name is deleted. Other values are the credentials of the BMC, a key
// of the server, or any host. Only waiting configs are recorded: an index of all hosts would grow with the hub.
type Waiters struct {
	store cache.ThreadSafeStore
}

// waiter is a config with the values that it waits for.
type waiter struct {
	config types.NamespacedName
	values []string
}

// byValue names the index of the waiters by value.
const byValue = "value"

// NewWaiters returns Waiters without records.
func NewWaiters() *Waiters {
	return &Waiters{cache.NewThreadSafeStore(cache.Indexers{byValue: func(obj any) ([]string, error) {
		return obj.(waiter).values, nil //nolint:forcetypeassert // Begin stores nothing else
	}}, cache.Indices{})}
}

// Begin records what a config waits for. To miss no change, call it before the read.
func (w *Waiters) Begin(config types.NamespacedName, values ...string) {
	w.store.Update(config.String(), waiter{config, values})
}

// End records that a config does not wait anymore.
func (w *Waiters) End(config types.NamespacedName) { w.store.Delete(config.String()) }

// Of returns the configs of a namespace that wait for one of the values. An empty namespace means all namespaces.
func (w *Waiters) Of(namespace string, values ...string) []types.NamespacedName {
	waiting := sets.New[types.NamespacedName]()
	for _, value := range values {
		found, _ := w.store.ByIndex(byValue, value) // the index exists
		for _, obj := range found {
			config := obj.(waiter).config //nolint:forcetypeassert // Begin stores nothing else
			if namespace == "" || config.Namespace == namespace {
				waiting.Insert(config)
			}
		}
	}
	return waiting.UnsortedList()
}
