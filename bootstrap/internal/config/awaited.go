package config

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// awaited says by which MAC addresses configs wait for their hosts. An Agent with one of them that booted another config's image is news for them. It is remembered
// for those that wait only: an index of BareMetalHosts by their addresses would grow with all hosts of the hub.
type awaited struct {
	mutex sync.Mutex
	macs  map[types.NamespacedName][]string
}

func newAwaited() *awaited { return &awaited{macs: map[types.NamespacedName][]string{}} }

// begun notes for what a config waits. To miss nothing it is called before Agents are looked for.
func (a *awaited) begun(config types.NamespacedName, macs []string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.macs[config] = macs
}

// ended notes that a config does not wait any more.
func (a *awaited) ended(config types.NamespacedName) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.macs, config)
}

// by returns the configs of a namespace that wait for one of the addresses.
func (a *awaited) by(namespace string, macs []string) []types.NamespacedName {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var waiting []types.NamespacedName
	for config, wanted := range a.macs {
		if config.Namespace == namespace && slices.ContainsFunc(wanted, func(mac string) bool { return slices.Contains(macs, mac) }) {
			waiting = append(waiting, config)
		}
	}
	return waiting
}
