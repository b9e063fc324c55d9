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

// remembered is how many changes can be watched after they happened.
const remembered = 1000

// key names an object.
type key struct {
	kind *kind
	types.NamespacedName
}

// change is what happened to an object: before is nil when it was made, after when it was deleted.
type change struct {
	key           key
	before, after client.Object
	// last is the object with the resource version of the change.
	last client.Object
}

// store keeps objects, none of which is changed once it is in here, and what happened last.
type store struct {
	mu      sync.Mutex
	objects map[key]client.Object
	// version counts the changes; the last of them are kept.
	version int
	changes []change
	changed chan struct{} // closed at the next change
}

func newStore() *store {
	return &store{objects: map[key]client.Object{}, changed: make(chan struct{})}
}

// write puts what act makes of an object in its place, and returns it; nil deletes it. act gets nil for an object that is not there.
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
	if len(s.changes) > 2*remembered {
		s.changes = slices.Clone(s.changes[remembered:])
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

// list returns what is selected, in the order of the names, and the version at that time.
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

// since returns what happened to what is selected after a version, and the version that was reached; more is closed when there is more.
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

// conflict is the answer to a write that is based on another version of the object.
func conflict(k key, current, wanted metav1.Object) error {
	if wanted.GetResourceVersion() == "" || wanted.GetResourceVersion() == current.GetResourceVersion() {
		return nil
	}
	return apierrors.NewConflict(k.kind.resource().GroupResource(), k.Name, errModified)
}
