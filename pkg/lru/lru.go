// Package lru provides bounded caches, so that the memory of a manager does not grow with the number of
// objects.
package lru

import (
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Cache holds a fixed number of entries and drops the least recently used one. It is safe for concurrent use.
type Cache[K comparable, V any] = lru.Cache[K, V]

// New returns a cache of at most size entries; it panics unless size is positive.
func New[K comparable, V any](size int) *Cache[K, V] { return NewWithEvict[K, V](size, nil) }

// NewWithEvict is New with a function that is called with each entry that is dropped.
func NewWithEvict[K comparable, V any](size int, evicted func(K, V)) *Cache[K, V] {
	cache, err := lru.NewWithEvict(size, evicted)
	if err != nil { // the size is not positive
		panic(fmt.Sprintf("cannot create a cache of %d entries: %v", size, err))
	}
	return cache
}
