// Package apply writes desired objects with server-side apply, and only when something would change.
package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Applier applies objects under one field manager.
type Applier struct {
	client client.Client
	owner  client.FieldOwner

	// applied holds what was applied last, by object. What a restart or the limit makes it forget costs one request that changes nothing at the
	// server.
	applied *lru.Cache // key -> application
}

// application is what was applied to an object.
type application struct {
	digest [sha256.Size]byte
	// uid and version are those of the object that was last found to hold it: the same one need not be compared again, which costs more than all else.
	uid     types.UID
	version string
}

// rememberedObjects is far more than one hub's clusters have objects of ours at work at one time; a digest takes some 150 bytes.
const rememberedObjects = 16384

// New returns an Applier that writes under the given field manager.
func New(c client.Client, owner client.FieldOwner) *Applier {
	return &Applier{client: c, owner: owner, applied: lru.New(rememberedObjects)}
}

// Apply makes the cluster hold the fields that desired states, taking them over from other field managers. Status, nulls, and empty
// strings outside metadata are not part of what desired states. It asks nothing of the API server when observed, the object as it was
// read before, already holds these fields and the same was applied last.
//
// observed is nil when the object does not exist. Otherwise its uid goes along, so that an object that vanished meanwhile is not made
// anew from the few fields that are ours: the API server then answers with a conflict. A resource version in desired goes along too, for what must not be
// written on an outdated look.
//
// On return desired holds the object as it is stored, unless nothing was asked. changed tells whether a request was made.
func (a *Applier) Apply(ctx context.Context, desired, observed client.Object) (changed bool, err error) {
	wanted, err := a.fields(desired)
	if err != nil {
		return false, err
	}
	digest, err := digestOf(wanted)
	if err != nil {
		return false, err
	}
	key := fmt.Sprintf("%s %s", wanted.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(desired))
	if !isNil(observed) {
		current, err := a.current(key, digest, wanted, observed)
		if current || err != nil {
			return false, err
		}
		wanted.SetUID(observed.GetUID())
		wanted.SetResourceVersion(desired.GetResourceVersion())
	}
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), a.owner, client.ForceOwnership); err != nil {
		return true, fmt.Errorf("cannot apply %s: %w", key, err)
	}
	a.applied.Add(key, application{digest: digest})
	return true, a.store(wanted, desired)
}

// current tells whether the same was applied last, and observed still holds it.
func (a *Applier) current(key string, digest [sha256.Size]byte, wanted *unstructured.Unstructured, observed client.Object) (bool, error) {
	found, _ := a.applied.Get(key)
	last, known := found.(application)
	if !known || last.digest != digest {
		return false, nil
	}
	now := application{digest: digest, uid: observed.GetUID(), version: observed.GetResourceVersion()}
	if last == now && now.version != "" {
		return true, nil
	}
	holds, err := a.holds(wanted, observed)
	if holds {
		a.applied.Add(key, now)
	}
	return holds, err
}

// fields returns what obj states, as it is sent to the API server.
func (a *Applier) fields(obj client.Object) (*unstructured.Unstructured, error) {
	u, err := a.unstructured(obj)
	if err != nil {
		return nil, err
	}
	delete(u.Object, "status")
	for _, field := range []string{"creationTimestamp", "managedFields", "resourceVersion", "uid", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	for name, value := range u.Object {
		if name == "metadata" {
			continue
		}
		if pruned := prune(value); pruned != nil {
			u.Object[name] = pruned
		} else {
			delete(u.Object, name)
		}
	}
	return u, nil
}

func (a *Applier) unstructured(obj client.Object) (*unstructured.Unstructured, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.DeepCopy(), nil
	}
	gvk, err := apiutil.GVKForObject(obj, a.client.Scheme())
	if err != nil {
		return nil, fmt.Errorf("cannot tell the kind of %T: %w", obj, err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("cannot convert %s: %w", gvk.Kind, err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// holds tells whether observed already has all fields of wanted.
func (a *Applier) holds(wanted *unstructured.Unstructured, observed client.Object) (bool, error) {
	have, err := a.unstructured(observed)
	if err != nil {
		return false, err
	}
	return contains(have.Object, wanted.Object), nil
}

func (a *Applier) store(stored *unstructured.Unstructured, into client.Object) error {
	if u, ok := into.(*unstructured.Unstructured); ok {
		u.Object = stored.Object
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, into); err != nil {
		return fmt.Errorf("cannot read the applied %s: %w", stored.GetKind(), err)
	}
	return nil
}

// digestOf leaves out the owner references. Others take ours over (Cluster API puts the Machine in the place of the control plane), and with an
// entry goes our ownership of it: there is nothing to withdraw. Those that are wanted are looked for in what is observed.
func digestOf(u *unstructured.Unstructured) ([sha256.Size]byte, error) {
	owners := u.GetOwnerReferences()
	u.SetOwnerReferences(nil)
	data, err := json.Marshal(u.Object) // map keys are sorted
	u.SetOwnerReferences(owners)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("cannot encode %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return sha256.Sum256(data), nil
}

// prune returns value without nulls and empty strings; nil when nothing was there to begin with. Empty objects and lists stay: they may
// be meant.
func prune(value any) any {
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		if v == "" {
			return nil
		}
	case map[string]any:
		for key, item := range v {
			if pruned := prune(item); pruned != nil {
				v[key] = pruned
			} else {
				delete(v, key)
			}
		}
	case []any:
		for i := range v {
			if item, ok := v[i].(map[string]any); ok {
				v[i] = prune(item)
			}
		}
	}
	return value
}

// contains tells whether have holds all that is in want. Lists must be equal item by item, except for those that several writers share
// (owner references, finalizers), of which each wanted item must be there.
func contains(have, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		for key, item := range w {
			if key == "ownerReferences" || key == "finalizers" {
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

func isNil(obj client.Object) bool {
	return obj == nil || reflect.ValueOf(obj).IsNil()
}
