package reconcile

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

const (
	// CacheLag is how long a write is waited for in the cache. It takes milliseconds; after this time the cache is taken as it is.
	CacheLag = time.Second
	// rememberedWrites is more than are made in that time.
	rememberedWrites = 8192
)

// Written remembers what was written last, by object: on a cache that is behind, a reconcile goes on with that and not with what it reads.
type Written[T any] struct {
	now    func() time.Time
	writes *lru.Cache[any, write[T]]
}

type write[T any] struct {
	what T
	// outdated are the resource versions that are older than the write.
	outdated []string
	at       time.Time
}

// NewWritten returns a memory of nothing.
func NewWritten[T any](now func() time.Time) *Written[T] {
	return &Written[T]{now: now, writes: lru.New[any, write[T]](rememberedWrites)}
}

// Wrote notes a write, and the resource versions that are older than it; "" is that of an object that did not exist.
func (w *Written[T]) Wrote(key any, what T, outdated ...string) {
	w.writes.Add(key, write[T]{what: what, outdated: outdated, at: w.now()})
}

// Forget ends the memory of an object: it is seen, or gone.
func (w *Written[T]) Forget(key any) { w.writes.Remove(key) }

// Last is what was written last.
func (w *Written[T]) Last(key any) (what T, known bool) {
	last, known := w.last(key)
	return last.what, known
}

// After is what was written last, if that was after the given version. It holds however long the cache is behind: no version comes back.
func (w *Written[T]) After(key any, version string) (what T, known bool) {
	if last, known := w.last(key); known && slices.Contains(last.outdated, version) {
		return last.what, true
	}
	return what, false
}

// Unseen is what was written last, if that was after the given version, and for how much longer the cache is waited
// for: from then on it is taken as it is, for the write changed nothing, or what it made is gone again.
func (w *Written[T]) Unseen(key any, version string) (what T, left time.Duration) {
	last, _ := w.last(key)
	if left = CacheLag - w.now().Sub(last.at); left <= 0 || !slices.Contains(last.outdated, version) {
		return what, 0
	}
	return last.what, left
}

func (w *Written[T]) last(key any) (write[T], bool) { return w.writes.Get(key) }

// Writes remembers only that something was written, so that it is not written a second time.
type Writes struct{ written *Written[struct{}] }

// NewWrites returns a memory without writes.
func NewWrites(now func() time.Time) *Writes { return &Writes{NewWritten[struct{}](now)} }

// Wrote notes a write to an object that had the given resource version before; "" is that of an object that did not exist.
func (w *Writes) Wrote(key, version string) { w.written.Wrote(key, struct{}{}, version) }

// Unseen is for how much longer the cache is waited for that still has the version from before the last write; 0 when
// there is nothing to wait for.
func (w *Writes) Unseen(key, version string) (left time.Duration) {
	_, left = w.written.Unseen(key, version)
	return left
}

// Key is that of one kind of write to an object.
func Key(what string, obj client.Object) string {
	return what + " " + client.ObjectKeyFromObject(obj).String()
}
