package reconcile

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Waiters records the values that configs wait for, where no index leads from a value to the configs. Such a value
// is a MAC address of the host, which an Agent has that booted another config's image. Another value is the name
// of the Node, until the Machine that has the name is deleted. Other values are the credentials of the BMC, a key
// of the server, or any host. Only waiting configs are recorded: an index of all hosts would grow with the hub.
type Waiters struct {
	mutex  sync.Mutex
	values map[types.NamespacedName][]string
}

// NewWaiters returns Waiters without records.
func NewWaiters() *Waiters { return &Waiters{values: map[types.NamespacedName][]string{}} }

// Begin records what a config waits for. To miss no change, call it before the read.
func (w *Waiters) Begin(config types.NamespacedName, values ...string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.values[config] = values
}

// End records that a config does not wait anymore.
func (w *Waiters) End(config types.NamespacedName) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	delete(w.values, config)
}

// Of returns the configs of a namespace that wait for one of the values. An empty namespace means all namespaces.
func (w *Waiters) Of(namespace string, values ...string) []types.NamespacedName {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var waiting []types.NamespacedName
	for config, wanted := range w.values {
		if (namespace == "" || config.Namespace == namespace) &&
			slices.ContainsFunc(wanted, func(value string) bool { return slices.Contains(values, value) }) {
			waiting = append(waiting, config)
		}
	}
	return waiting
}
