package hostconfig

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// waiters says what configs wait for that leads to them from no index: the MAC addresses of their hosts, on an Agent
// that booted another config's image, the name of their Nodes, until another Machine is gone that has it, the
// credentials of their BMCs, what others of their server have in common with it, or any host. It is remembered for
// those that wait only: an index of all hosts would grow with the hub.
type waiters struct {
	mutex  sync.Mutex
	values map[types.NamespacedName][]string
}

// anyHost is what configs wait for whose Machines have no host.
const anyHost = "host"

func newWaiters() *waiters { return &waiters{values: map[types.NamespacedName][]string{}} }

// begun notes for what a config waits. To miss nothing it is called before it is looked for.
func (a *waiters) begun(config types.NamespacedName, values ...string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.values[config] = values
}

// ended notes that a config does not wait any more.
func (a *waiters) ended(config types.NamespacedName) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.values, config)
}

// by returns the configs of a namespace, of all where it is empty, that wait for one of the values.
func (a *waiters) by(namespace string, values ...string) []types.NamespacedName {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var waiting []types.NamespacedName
	for config, wanted := range a.values {
		if (namespace == "" || config.Namespace == namespace) && slices.ContainsFunc(wanted, func(value string) bool { return slices.Contains(values, value) }) {
			waiting = append(waiting, config)
		}
	}
	return waiting
}
