package lightapi

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// historySize is the number of past changes that watches can read.
const historySize = 1000

// key identifies an object.
type key struct {
	kind *kind
	types.NamespacedName
}

// change is a change of an object: before is nil for a creation, after is nil for a deletion.
type change struct {
	key           key
	before, after client.Object
	// last is the object with the resource version of the change.
	last client.Object
}

// store has the objects, which are immutable in the store, and the recent changes.
type store struct {
	mu      sync.Mutex
	objects map[key]client.Object
	// version is the number of changes; the recent ones are kept.
	version int
	changes []change
	changed chan struct{} // closed at the next change
}

func newStore() *store {
	return &store{objects: map[key]client.Object{}, changed: make(chan struct{})}
}

// write replaces an object with the result of act and returns it; nil deletes the object. act gets nil if the
// object does not exist.
func (s *store) write(k key, act func(current client.Object) (client.Object, error)) (client.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.objects[k]
	after, err := act(before)
	if err != nil || after == before {
		return before, err
	}
	s.version++
	happened := change{key: k, before: before, after: after, last: after}
	if after == nil {
		happened.last = before.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy is of the same type
		delete(s.objects, k)
	} else {
		s.objects[k] = after
	}
	happened.last.SetResourceVersion(strconv.Itoa(s.version))
	s.changes = append(s.changes, happened)
	if len(s.changes) > 2*historySize {
		s.changes = slices.Clone(s.changes[historySize:])
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return happened.last, nil
}

func (s *store) get(k key) (client.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.objects[k]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(k.kind.resource().GroupResource(), k.Name)
}

// list returns the selected objects ordered by name, and the current version.
func (s *store) list(selected selection) ([]client.Object, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []client.Object
	for k, object := range s.objects {
		if selected.has(k, object) {
			found = append(found, object)
		}
	}
	slices.SortFunc(found, func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return found, s.version
}

// since returns the changes of selected objects after a version, and the reached version. more is closed at the
// next change.
func (s *store) since(version int, selected selection) (events []watch.Event, reached int, more <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	missed := s.version - version
	if missed > len(s.changes) {
		return nil, 0, nil, apierrors.NewResourceExpired("too old resource version: " + strconv.Itoa(version))
	}
	for _, c := range s.changes[len(s.changes)-max(missed, 0):] {
		was, is := selected.has(c.key, c.before), selected.has(c.key, c.after)
		switch {
		case was && is:
			events = append(events, watch.Event{Type: watch.Modified, Object: c.last})
		case is:
			events = append(events, watch.Event{Type: watch.Added, Object: c.last})
		case was:
			events = append(events, watch.Event{Type: watch.Deleted, Object: c.last})
		}
	}
	return events, max(version, s.version), s.changed, nil
}

// conflict returns the error for a write that is based on another version of the object.
func conflict(k key, current, wanted metav1.Object) error {
	if wanted.GetResourceVersion() == "" || wanted.GetResourceVersion() == current.GetResourceVersion() {
		return nil
	}
	return apierrors.NewConflict(k.kind.resource().GroupResource(), k.Name, errModified)
}
