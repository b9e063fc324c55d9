package reconcile

import (
	"sync"
	"time"

	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// CacheLag is how long a write is waited for in the cache. It takes milliseconds; after this time the cache is taken as it is.
	CacheLag = time.Second
	// rememberedWrites is more than are made in that time.
	rememberedWrites = 8192
)

// Writes remembers what was written but may not have reached the cache yet, so that it is not written a second time.
type Writes struct {
	mu     sync.Mutex
	now    func() time.Time
	writes *lru.Cache // key -> written
}

type written struct {
	version string
	at      time.Time
}

// NewWrites returns a memory without writes.
func NewWrites(now func() time.Time) *Writes {
	return &Writes{now: now, writes: lru.New(rememberedWrites)}
}

// Wrote notes a write to an object that had the given resource version before; "" is that of an object that did not exist.
func (w *Writes) Wrote(key, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes.Add(key, written{version: version, at: w.now()})
}

// Unseen tells whether the cache still has the version from before the last write.
func (w *Writes) Unseen(key, version string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	found, ok := w.writes.Get(key)
	if !ok {
		return false
	}
	last := found.(written) //nolint:forcetypeassert // nothing else is put in
	return last.version == version && w.now().Sub(last.at) < CacheLag
}

// Key is that of one kind of write to an object.
func Key(what string, obj client.Object) string {
	return what + " " + client.ObjectKeyFromObject(obj).String()
}
