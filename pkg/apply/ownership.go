package apply

import (
	"bytes"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// ownedBy returns the fields of an object that are recorded as applied under a field manager. Those of another version
// of the API may have other names: they count as none, and are recorded again.
func ownedBy(owner client.FieldOwner, obj client.Object, version string) *fieldpath.Set {
	owned := &fieldpath.Set{}
	for _, e := range Own(owner, obj.GetManagedFields()) {
		if e.APIVersion != version || e.FieldsV1 == nil || owned.FromJSON(bytes.NewReader(e.FieldsV1.Raw)) != nil {
			return &fieldpath.Set{}
		}
	}
	return owned
}

// Owns reports whether a field of an object, or anything below it, is recorded as applied under the field manager of an
// Applier: it stated what is stated there, and others may have stated the same.
func (a *Applier) Owns(obj client.Object, path ...string) bool {
	kind, err := apiutil.GVKForObject(obj, a.client.Scheme())
	if err != nil {
		return false
	}
	field := make([]any, len(path))
	for i, part := range path {
		field[i] = part
	}
	prefix := fieldpath.MakePathOrDie(field...)
	found := false
	ownedBy(a.owner, obj, kind.GroupVersion().String()).Iterate(func(owned fieldpath.Path) {
		found = found || len(owned) >= len(prefix) && owned[:len(prefix)].Equals(prefix)
	})
	return found
}

// stated is what an object states that is recorded as owned: not what says which object it is.
func stated(obj map[string]any) map[string]any {
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

// settled reports whether the fields that we own are those that want states: there is nothing to withdraw, and nothing
// to take over. have, which contains want, is looked at where a value is owned as a whole: then all of it is ours.
func settled(owned *fieldpath.Set, want, have any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, _ := have.(map[string]any)
		return settledFields(owned, w, h)
	case []any:
		h, _ := have.([]any)
		return settledItems(owned, w, h)
	}
	return false // a value that is not ours, or was more than a value once
}

func settledFields(owned *fieldpath.Set, want, have map[string]any) bool {
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
			if adds(have[name], field) {
				return false
			}
		case !settled(below, field, have[name]):
			return false
		}
	}
	return true
}

// settledItems is about a list that several writers share, of which the items are owned.
func settledItems(owned *fieldpath.Set, want, have []any) bool {
	items := elements(owned)
	if len(items) != len(want) {
		return false
	}
	for _, e := range items {
		i := indexOf(want, e)
		if i < 0 {
			return false
		}
		if below, shared := owned.Children.Get(e); shared && (i >= len(have) || !settled(below, want[i], have[i])) {
			return false
		}
	}
	return true
}

// indexOf finds the item of a list that is owned, by its key or its value; -1 when there is none. A part of the key
// that is not stated is a default.
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

// elements are those of the topmost fields or items of a set.
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
