// Package apply writes desired objects with server-side apply, and only when something would change.
package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

// Applier applies objects under one field manager.
type Applier struct {
	client client.Client
	owner  client.FieldOwner

	// applied holds what objects were last found, or made, to hold. It saves comparisons: what a restart or the limit
	// makes it forget is told by the managed fields.
	applied *lru.Cache[object, application]
}

// object is one of a kind, in whatever version of the API.
type object struct {
	kind schema.GroupKind
	name types.NamespacedName
}

// application is what an object holds.
type application struct {
	digest [sha256.Size]byte
	uid    types.UID
	// version is that in which it was found to hold it: the same one need not be compared again, which costs more than all else.
	version string
}

// rememberedObjects is what 3,500 clusters with three control-plane Machines have; one takes some 350 bytes.
const rememberedObjects = 32768

// New returns an Applier that writes under the given field manager.
func New(c client.Client, owner client.FieldOwner) *Applier {
	return &Applier{client: c, owner: owner, applied: lru.New[object, application](rememberedObjects)}
}

// Apply makes the cluster hold the fields that desired states, taking them over from other field managers. Status,
// nulls, and empty strings that are no metadata or labels are not part of what desired states. It asks nothing of the
// API server when observed, the object as it was read before, already holds these fields, and no other was applied
// before: its managed fields tell (see [KeepOwn]).
//
// observed is nil when the object does not exist. Otherwise its uid goes along, so that an object that vanished
// meanwhile is not made again from the few fields that are ours: the API server then answers with a conflict. So does a
// uid in desired, for objects of which only the metadata was read. A resource version in desired goes along too, for
// what must not be written on an outdated look.
//
// On return desired holds the object as it is stored, unless nothing was asked. changed reports whether a request was made.
func (a *Applier) Apply(ctx context.Context, desired, observed client.Object) (changed bool, err error) {
	kind, err := apiutil.GVKForObject(desired, a.client.Scheme())
	if err != nil {
		return false, fmt.Errorf("cannot tell the kind of %T: %w", desired, err)
	}
	digest, err := digestOf(desired)
	if err != nil {
		return false, err
	}
	key := object{kind.GroupKind(), client.ObjectKeyFromObject(desired)}
	if !kube.IsNil(observed) && a.unchanged(key, digest, desired, observed) {
		return false, nil
	}
	wanted, err := fields(desired, kind)
	if err != nil {
		return false, err
	}
	wanted.SetUID(desired.GetUID())
	if !kube.IsNil(observed) {
		current, err := a.current(key, digest, wanted, observed)
		if current || err != nil {
			return false, err
		}
		wanted.SetUID(observed.GetUID())
		wanted.SetResourceVersion(desired.GetResourceVersion())
	}
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), a.owner, client.ForceOwnership); err != nil {
		return true, fmt.Errorf("cannot apply %s %s: %w", key.kind, key.name, err)
	}
	a.applied.Add(key, application{digest: digest, uid: wanted.GetUID()})
	return true, store(wanted, desired)
}

// TryCreate returns the error with which the API server would refuse to create desired, by its schema of the kind or by
// an admission webhook. Nothing is created. Call it before an object is deleted only to be created again: what is
// refused afterwards would leave no object at all. The request names an object that does not exist, for webhooks refuse
// more of a change than of a new object.
func (a *Applier) TryCreate(ctx context.Context, desired client.Object) error {
	kind, err := apiutil.GVKForObject(desired, a.client.Scheme())
	if err != nil {
		return fmt.Errorf("cannot tell the kind of %T: %w", desired, err)
	}
	wanted, err := fields(desired, kind)
	if err != nil {
		return err
	}
	wanted.SetName(desired.GetName() + "-" + rand.String(5))
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), a.owner, client.ForceOwnership, client.DryRunAll); err != nil {
		return fmt.Errorf("a dry run of %s %s: %w", kind.Kind, client.ObjectKeyFromObject(desired), err)
	}
	return nil
}

// unchanged reports whether this very version of the object was found to hold this before.
func (a *Applier) unchanged(key object, digest [sha256.Size]byte, desired, observed client.Object) bool {
	last, known := a.applied.Get(key)
	return known && observed.GetResourceVersion() != "" && last == application{digest, observed.GetUID(), observed.GetResourceVersion()} &&
		hasOwners(observed, desired.GetOwnerReferences())
}

func hasOwners(observed client.Object, wanted []metav1.OwnerReference) bool {
	have := observed.GetOwnerReferences()
	return !slices.ContainsFunc(wanted, func(w metav1.OwnerReference) bool {
		return !slices.ContainsFunc(have, func(h metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(h, w) })
	})
}

// current reports whether observed holds what is wanted, and nothing else that we applied.
func (a *Applier) current(key object, digest [sha256.Size]byte, wanted *unstructured.Unstructured, observed client.Object) (bool, error) {
	last, known := a.applied.Get(key)
	known = known && last.uid == observed.GetUID()
	if known && last.digest != digest {
		return false, nil
	}
	have, err := content(observed)
	want := stated(wanted.Object)
	if err != nil || !contains(have, want) {
		return false, err
	}
	// What we applied ourselves needs no proof: where there never is one, it would be written again and again.
	if !known && !settled(ownedBy(a.owner, observed, wanted.GetAPIVersion()), want, have) {
		return false, nil
	}
	a.applied.Add(key, application{digest, observed.GetUID(), observed.GetResourceVersion()})
	return true, nil
}

// fields returns what obj states, as it is sent to the API server.
func fields(obj client.Object, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	stated, err := content(obj.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy of the same type
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: stated}
	u.SetGroupVersionKind(kind)
	for _, field := range []string{"creationTimestamp", "resourceVersion", "uid", "generation"} {
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

// content returns the fields of an object that matter here. It may share them with the object.
func content(obj client.Object) (map[string]any, error) {
	obj = bare(obj)
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object, nil
	}
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("cannot convert %T %s: %w", obj, obj.GetName(), err)
	}
	delete(converted, "status")
	return converted, nil
}

// bare returns a shallow copy of an object without status and managed fields, which are the bulk of it.
func bare(obj client.Object) client.Object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		copied := maps.Clone(u.Object)
		delete(copied, "status")
		if metadata, ok := copied["metadata"].(map[string]any); ok {
			copied["metadata"] = maps.Clone(metadata)
			unstructured.RemoveNestedField(copied, "metadata", "managedFields")
		}
		return &unstructured.Unstructured{Object: copied}
	}
	original := reflect.ValueOf(obj).Elem()
	copied := reflect.New(original.Type())
	copied.Elem().Set(original)
	if status := copied.Elem().FieldByName("Status"); status.IsValid() {
		status.SetZero()
	}
	result := copied.Interface().(client.Object) //nolint:forcetypeassert // a copy of the same type
	result.SetManagedFields(nil)
	return result
}

func store(stored *unstructured.Unstructured, into client.Object) error {
	if u, ok := into.(*unstructured.Unstructured); ok {
		u.Object = stored.Object
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, into); err != nil {
		return fmt.Errorf("cannot read the applied %s: %w", stored.GetKind(), err)
	}
	return nil
}

// digestOf leaves out the owner references, and on which look at the object it is written.
func digestOf(desired client.Object) ([sha256.Size]byte, error) {
	obj := bare(desired)
	obj.SetOwnerReferences(nil)
	obj.SetResourceVersion("")
	data, err := json.Marshal(obj) // map keys are sorted
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("cannot encode %T %s: %w", desired, desired.GetName(), err)
	}
	return sha256.Sum256(data), nil
}

// labels are the fields outside metadata in which an empty string is a value: the label of a role has none.
var labels = []string{"labels", "annotations", "matchLabels", "nodeLabels"}

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
			if slices.Contains(labels, key) && item != nil {
				continue
			}
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
