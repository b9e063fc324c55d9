package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// ownedBy returns the fields of an object that are recorded as applied under a field manager. Fields of
// another API version may have other names: they are ignored, and recorded again.
func ownedBy(owner client.FieldOwner, obj client.Object, version string) *fieldpath.Set {
	owned := &fieldpath.Set{}
	for _, e := range Own(owner, obj.GetManagedFields()) {
		if e.APIVersion != version || e.FieldsV1 == nil || owned.FromJSON(e.FieldsV1.GetRawReader()) != nil {
			return &fieldpath.Set{}
		}
	}
	return owned
}

// Owns reports whether a field of an object, or a field below it, is recorded as applied by this Applier.
// Other field managers may own the same field.
func (a *Applier) Owns(obj client.Object, path ...string) bool {
	kind, err := apiutil.GVKForObject(obj, a.client.Scheme())
	if err != nil {
		return false
	}
	field := make([]any, len(path))
	for i, part := range path {
		field[i] = part
	}
	return hasField(ownedBy(a.owner, obj, kind.GroupVersion().String()), fieldpath.MakePathOrDie(field...))
}

// Managers are the field managers of an object, with the fields that each of them wrote by any operation.
type Managers map[string]*fieldpath.Set

// ManagersOf decodes managed fields. It returns an error if they cannot be decoded: any field may then have
// another manager.
func ManagersOf(entries []metav1.ManagedFieldsEntry) (Managers, error) {
	managers := Managers{}
	for _, e := range entries {
		if e.FieldsV1 == nil {
			continue
		}
		written := &fieldpath.Set{}
		if err := written.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("cannot decode the managed fields of %s: %w", bound.Cause(e.Manager), err)
		}
		if former := managers[e.Manager]; former != nil {
			written = written.Union(former)
		}
		managers[e.Manager] = written
	}
	return managers, nil
}

// Of returns the managers that wrote a field, or a field below it. The path consists of names of fields, and
// keys of list items ([fieldpath.KeyByFields]).
func (m Managers) Of(path ...any) sets.Set[string] {
	field, writers := fieldpath.MakePathOrDie(path...), sets.New[string]()
	for manager, written := range m {
		if hasField(written, field) {
			writers.Insert(manager)
		}
	}
	return writers
}

// hasField reports whether a set has a field, or a field below it.
func hasField(set *fieldpath.Set, field fieldpath.Path) bool {
	for _, element := range field[:len(field)-1] {
		set = set.WithPrefix(element)
	}
	last := field[len(field)-1]
	return set.Members.Has(last) || !set.WithPrefix(last).Empty()
}

// withoutIdentity returns the fields of an object that managed fields record, without kind, API version, name
// and namespace.
func withoutIdentity(obj map[string]any) map[string]any {
	fields := map[string]any{}
	for key, field := range obj {
		if key != "apiVersion" && key != "kind" {
			fields[key] = field
		}
	}
	metadata, _ := obj["metadata"].(map[string]any)
	own := map[string]any{}
	for key, field := range metadata {
		if key != "name" && key != "namespace" {
			own[key] = field
		}
	}
	fields["metadata"] = own
	return fields
}

// ownsExactly reports whether the owned fields are exactly those of want: none to withdraw, and none to take
// over. A value that is owned as a whole is compared with have, which contains want.
func ownsExactly(owned *fieldpath.Set, want, have any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, _ := have.(map[string]any)
		return ownsExactFields(owned, w, h)
	case []any:
		h, _ := have.([]any)
		return ownsExactItems(owned, w, h)
	}
	return false // a value that is not owned, or was an object or a list before
}

func ownsExactFields(owned *fieldpath.Set, want, have map[string]any) bool {
	for _, e := range elements(owned) {
		if e.FieldName == nil {
			return false
		}
		if _, found := want[*e.FieldName]; !found && *e.FieldName != ownerReferences {
			return false
		}
	}
	for name, field := range want {
		element := fieldpath.FieldNameElement(name)
		below, shared := owned.Children.Get(element)
		if !shared {
			below = &fieldpath.Set{}
		}
		switch {
		case name == ownerReferences:
		case !shared && owned.Members.Has(element):
			if hasMore(have[name], field) {
				return false
			}
		case !ownsExactly(below, field, have[name]):
			return false
		}
	}
	return true
}

// ownsExactItems is ownsExactly for a list that several writers share and whose items are owned.
func ownsExactItems(owned *fieldpath.Set, want, have []any) bool {
	items := elements(owned)
	if len(items) != len(want) {
		return false
	}
	for _, e := range items {
		i := indexOf(want, e)
		if i < 0 {
			return false
		}
		if below, shared := owned.Children.Get(e); shared && (i >= len(have) || !ownsExactly(below, want[i], have[i])) {
			return false
		}
	}
	return true
}

// indexOf returns the index of an owned item, found by its key or its value; -1 if there is none. A missing
// part of the key is a default.
func indexOf(items []any, element fieldpath.PathElement) int {
	for i, item := range items {
		switch {
		case element.Value != nil && value.Equals(value.NewValueInterface(item), *element.Value):
			return i
		case element.Key != nil && hasKey(item, element):
			return i
		}
	}
	return -1
}

func hasKey(item any, element fieldpath.PathElement) bool {
	fields, ok := item.(map[string]any)
	for _, part := range *element.Key {
		if own, found := fields[part.Name]; found && !value.Equals(value.NewValueInterface(own), part.Value) {
			return false
		}
	}
	return ok
}

// elements returns the topmost fields or items of a set.
func elements(s *fieldpath.Set) []fieldpath.PathElement {
	var all []fieldpath.PathElement
	s.Members.Iterate(func(e fieldpath.PathElement) { all = append(all, e) })
	s.Children.Iterate(func(e fieldpath.PathElement) {
		if !s.Members.Has(e) {
			all = append(all, e)
		}
	})
	return all
}
