package hostconfig

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// waiters records the values that configs wait for, where no index leads from a value to the configs. Such a value
// is a MAC address of the host, which an Agent has that booted another config's image. Another value is the name
// of the Node, until the Machine that has the name is deleted. Other values are the credentials of the BMC, a key
// of the server, or any host. Only waiting configs are recorded: an index of all hosts would grow with the hub.
type waiters struct {
	mutex  sync.Mutex
	values map[types.NamespacedName][]string
}

// anyHost is the value of configs whose Machines have no host.
const anyHost = "host"

func newWaiters() *waiters { return &waiters{values: map[types.NamespacedName][]string{}} }

// begun records what a config waits for. To miss no change, call it before the read.
func (a *waiters) begun(config types.NamespacedName, values ...string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.values[config] = values
}

// ended records that a config does not wait anymore.
func (a *waiters) ended(config types.NamespacedName) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.values, config)
}

// by returns the configs of a namespace that wait for one of the values. An empty namespace means all namespaces.
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
