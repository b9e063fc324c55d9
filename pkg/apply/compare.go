package apply

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
)

// ownerReferences are left out of what is withdrawn: others take ours over (Cluster API puts the Machine in the place
// of the control plane), and with an entry goes our ownership of it. Those that are wanted are looked for in what is
// observed.
const ownerReferences = "ownerReferences"

// contains reports whether have holds all that is in want. Lists must be equal item by item, except for those that several writers share
// (owner references, finalizers), of which each wanted item must be there.
func contains(have, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		for key, item := range w {
			if key == ownerReferences || key == "finalizers" {
				if !containsEach(h[key], item) {
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

func containsEach(have, want any) bool {
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

// sameNumber compares numbers that came once from JSON and once from a Go type.
func sameNumber(have, want any) bool {
	h, w := reflect.ValueOf(have), reflect.ValueOf(want)
	return h.IsValid() && w.IsValid() && h.CanInt() && w.CanInt() && h.Int() == w.Int()
}

// adds reports whether have, which contains want, holds more than that. Nothings are as good as absent: Go types state some of them always.
func adds(have, want any) bool {
	switch h := have.(type) {
	case map[string]any:
		w, _ := want.(map[string]any)
		for key, item := range h {
			wanted, found := w[key]
			if !found && !isNothing(item) || found && adds(item, wanted) {
				return true
			}
		}
	case []any:
		w, _ := want.([]any)
		for i := range h {
			if i >= len(w) || adds(h[i], w[i]) {
				return true
			}
		}
	}
	return false
}

// isNothing reports whether value is the zero value of its type.
func isNothing(value any) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || v.IsZero() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0
}
