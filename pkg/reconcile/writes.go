package reconcile

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

const (
	// CacheLag is the longest time that a reconcile waits until the cache shows a write. Usually it takes
	// milliseconds. After CacheLag the cache is trusted as it is.
	CacheLag = time.Second
	// maxWrites is above the number of writes of one manager during CacheLag.
	maxWrites = 8192
)

// WriteCache remembers the last written value by object. While the informer cache is stale, a reconcile
// continues with this value instead of the cached one.
type WriteCache[K comparable, T any] struct {
	clock  clock.PassiveClock
	writes *lru.Cache[K, write[T]]
}

type write[T any] struct {
	value T
	// outdated are the resource versions from before the write.
	outdated []string
	// stored is the resource version after the write; empty if it is not known.
	stored string
	at     time.Time
}

// follows reports whether the write was after a resource version. Another client may have written between the version
// that was read and the write.
func (w write[T]) follows(version string) bool {
	if slices.Contains(w.outdated, version) {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(version, w.stored)
	return err == nil && order < 0
}

// NewWriteCache returns an empty WriteCache.
func NewWriteCache[K comparable, T any](c clock.PassiveClock) *WriteCache[K, T] {
	return &WriteCache[K, T]{clock: c, writes: lru.New[K, write[T]](maxWrites)}
}

// Record stores a written value, and the resource versions of the object from before the write; "" stands for
// a missing object.
func (w *WriteCache[K, T]) Record(key K, value T, outdated ...string) {
	w.writes.Add(key, write[T]{value: value, outdated: outdated, at: w.clock.Now()})
}

// RecordStored is like Record for a write whose response had the resource version stored.
func (w *WriteCache[K, T]) RecordStored(key K, value T, stored string, outdated ...string) {
	w.writes.Add(key, write[T]{value: value, outdated: outdated, stored: stored, at: w.clock.Now()})
}

// Forget drops the value of an object. Call it when the cache shows the write, or the object is deleted.
func (w *WriteCache[K, T]) Forget(key K) { w.writes.Remove(key) }

// Last returns the last written value.
func (w *WriteCache[K, T]) Last(key K) (value T, known bool) {
	last, known := w.last(key)
	return last.value, known
}

// NewerThan returns the last written value if it was written after the given resource version. This holds
// however long the cache is stale, because a resource version never returns.
func (w *WriteCache[K, T]) NewerThan(key K, version string) (value T, known bool) {
	if last, known := w.last(key); known && slices.Contains(last.outdated, version) {
		return last.value, true
	}
	return value, false
}

// Pending returns the last written value if it was written after the given resource version. left is how much
// longer the cache may take to show it. After CacheLag nothing is pending: the write changed nothing, or
// another client has reverted it.
func (w *WriteCache[K, T]) Pending(key K, version string) (value T, left time.Duration) {
	last, _ := w.last(key)
	if left = CacheLag - w.clock.Now().Sub(last.at); left <= 0 || !last.follows(version) {
		return value, 0
	}
	return last.value, left
}

func (w *WriteCache[K, T]) last(key K) (write[T], bool) { return w.writes.Get(key) }

// RecentWrites remembers that objects were written, so that they are not written twice while the cache is
// stale.
type RecentWrites struct {
	written *WriteCache[string, struct{}]
}

// NewRecentWrites returns an empty RecentWrites.
func NewRecentWrites(c clock.PassiveClock) *RecentWrites {
	return &RecentWrites{NewWriteCache[string, struct{}](c)}
}

// Record stores that an object was written which had the given resource version before; "" stands for a
// missing object.
func (w *RecentWrites) Record(key, version string) { w.written.Record(key, struct{}{}, version) }

// RecordStored is like Record for a write whose response had the resource version stored.
func (w *RecentWrites) RecordStored(key, stored, version string) {
	w.written.RecordStored(key, struct{}{}, stored, version)
}

// Pending returns how much longer the cache may take to show the last write; zero if it shows the write, or
// nothing was written.
func (w *RecentWrites) Pending(key, version string) (left time.Duration) {
	_, left = w.written.Pending(key, version)
	return left
}

// Key returns the key of one kind of write to an object.
func Key(write string, obj client.Object) string {
	return write + " " + client.ObjectKeyFromObject(obj).String()
}
