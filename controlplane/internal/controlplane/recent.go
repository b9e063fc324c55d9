package controlplane

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// unseenFor is how long a write is waited for in the cache. It takes milliseconds; after this time the cache is taken as it is.
	unseenFor = time.Second
	// rememberedWrites is more than are made in that time.
	rememberedWrites = 8192
)

// recentWrites remembers what was written but may not have reached the cache yet, so that it is not written a second time.
type recentWrites struct {
	mu     sync.Mutex
	now    func() time.Time
	writes *lru.Cache // key -> recentWrite
}

type recentWrite struct {
	version string
	at      time.Time
}

func newRecentWrites(now func() time.Time) *recentWrites {
	return &recentWrites{now: now, writes: lru.New(rememberedWrites)}
}

// wrote notes a write to an object that had the given resource version before; "" is that of an object that did not exist.
func (w *recentWrites) wrote(key, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes.Add(key, recentWrite{version: version, at: w.now()})
}

// unseen tells whether the cache still has the version from before the last write.
func (w *recentWrites) unseen(key, version string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	found, ok := w.writes.Get(key)
	if !ok {
		return false
	}
	last := found.(recentWrite) //nolint:forcetypeassert // nothing else is put in
	return last.version == version && w.now().Sub(last.at) < unseenFor
}

func keyOf(kind string, obj client.Object) string {
	return kind + " " + client.ObjectKeyFromObject(obj).String()
}

func isNil(obj client.Object) bool {
	return obj == nil || reflect.ValueOf(obj).IsNil()
}
