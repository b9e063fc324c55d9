package apply

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
)

// ownerReferences are never withdrawn. Other controllers replace the references of this provider (Cluster API
// replaces the control plane by the Machine), and with the entry its ownership is lost. Desired references
// are compared with the observed ones.
const ownerReferences = "ownerReferences"

// contains reports whether have has all of want. Lists must be equal item by item. Lists that several writers
// share (owner references, finalizers) must only have each item of want.
func contains(have, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		for key, item := range w {
			if key == ownerReferences || key == "finalizers" {
				if !containsItems(h[key], item) {
					return false
				}
			} else if !contains(h[key], item) {
				return false
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		if len(h) != len(w) {
			return false
		}
		for i := range w {
			if !contains(h[i], w[i]) {
				return false
			}
		}
		return true
	default:
		return equality.Semantic.DeepEqual(have, want) || sameNumber(have, want)
	}
}

func containsItems(have, want any) bool {
	haveItems, _ := have.([]any)
	wantItems, _ := want.([]any)
	for _, w := range wantItems {
		found := false
		for _, h := range haveItems {
			found = found || contains(h, w)
		}
		if !found {
			return false
		}
	}
	return true
}

// sameNumber compares a number that was decoded from JSON with one of a Go type.
func sameNumber(have, want any) bool {
	h, w := reflect.ValueOf(have), reflect.ValueOf(want)
	return h.IsValid() && w.IsValid() && h.CanInt() && w.CanInt() && h.Int() == w.Int()
}

// hasMore reports whether have, which contains want, has more than want. Empty values count as missing,
// because Go types always state some of them.
func hasMore(have, want any) bool {
	switch h := have.(type) {
	case map[string]any:
		w, _ := want.(map[string]any)
		for key, item := range h {
			wanted, found := w[key]
			if !found && !isEmpty(item) || found && hasMore(item, wanted) {
				return true
			}
		}
	case []any:
		w, _ := want.([]any)
		for i := range h {
			if i >= len(w) || hasMore(h[i], w[i]) {
				return true
			}
		}
	}
	return false
}

// isEmpty reports whether value is the zero value of its type, or an empty map or list.
func isEmpty(value any) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || v.IsZero() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0
}
