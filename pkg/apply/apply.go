// Package apply writes desired objects with server-side apply, and only if a request would change them.
package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

// Applier applies objects under one field manager.
type Applier struct {
	client client.Client
	owner  client.FieldOwner

	// applied holds the last state that objects were found in or brought to. It saves comparisons. For
	// forgotten objects, after a restart or an eviction, the managed fields are compared.
	applied *lru.Cache[object, appliedState]
}

// object identifies an object by kind and name, independent of the API version.
type object struct {
	kind schema.GroupKind
	name types.NamespacedName
}

// appliedState is the state of an object after the last comparison or request.
type appliedState struct {
	digest [sha256.Size]byte
	uid    types.UID
	// version is the resource version that was compared. The same version is not compared again, because the
	// comparison is the most expensive step.
	version string
}

// maxObjects is the number of objects of 3,500 clusters with three control-plane Machines. One entry takes
// about 350 bytes.
const maxObjects = 32768

// New returns an Applier that writes under the given field manager.
func New(c client.Client, owner client.FieldOwner) *Applier {
	return &Applier{client: c, owner: owner, applied: lru.New[object, appliedState](maxObjects)}
}

// Apply brings an object to the fields of desired, and takes these fields over from other field managers. It
// ignores the status, nulls, and empty strings outside of metadata and labels.
//
// It sends no request if observed, the object as last read, has these fields and Apply has applied no other
// field before. The managed fields record the applied fields (see [KeepOwn]).
//
// If the object does not exist, observed is nil. Otherwise the request carries its UID, so that a deleted
// object is not recreated from a few fields. The API server then answers with a conflict. A UID in desired
// has the same effect, for objects of which only the metadata was read. A resource version in desired makes
// the write fail on an outdated object.
//
// On return desired is the stored object, unless no request was sent. The result changed reports whether one was
// sent.
func (a *Applier) Apply(ctx context.Context, desired, observed client.Object) (changed bool, err error) {
	kind, err := apiutil.GVKForObject(desired, a.client.Scheme())
	if err != nil {
		return false, fmt.Errorf("cannot determine the kind of %T: %w", desired, err)
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
		current, err := a.isCurrent(key, digest, wanted, observed)
		if current || err != nil {
			return false, err
		}
		wanted.SetUID(observed.GetUID())
		wanted.SetResourceVersion(desired.GetResourceVersion())
	}
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), a.owner, client.ForceOwnership); err != nil {
		return true, fmt.Errorf("cannot apply %s %s: %w", key.kind, key.name, err)
	}
	a.applied.Add(key, appliedState{digest: digest, uid: wanted.GetUID()})
	return true, storeInto(wanted, desired)
}

// TryCreate returns the error with which the API server would refuse to create desired, by the schema of the
// kind or by an admission webhook. It creates no object. Call it before an object is deleted in order to
// recreate it: a refusal after the deletion would leave no object. The request names an object that does not
// exist, because webhooks refuse more changes of existing objects. An exhausted quota is no refusal: the
// deletion of the object releases its share.
func (a *Applier) TryCreate(ctx context.Context, desired client.Object) error {
	kind, err := apiutil.GVKForObject(desired, a.client.Scheme())
	if err != nil {
		return fmt.Errorf("cannot determine the kind of %T: %w", desired, err)
	}
	wanted, err := fields(desired, kind)
	if err != nil {
		return err
	}
	wanted.SetName(trialName(desired.GetName()))
	err = a.client.Apply(
		ctx,
		client.ApplyConfigurationFromUnstructured(wanted),
		a.owner,
		client.ForceOwnership,
		client.DryRunAll,
	)
	if err != nil && !kube.QuotaExceeded(err) {
		return fmt.Errorf("a dry run of %s %s: %w", kind.Kind, client.ObjectKeyFromObject(desired), err)
	}
	return nil
}

// trialName returns a random name that is like name and not longer than a DNS label, unless name is. Hive's
// admission webhook refuses longer names of ClusterDeployments.
func trialName(name string) string {
	suffix := "-" + rand.String(5)
	if length := max(len(name), validation.DNS1123LabelMaxLength) - len(suffix); len(name) > length {
		name = strings.TrimRight(name[:length], "-.")
	}
	return name + suffix
}

// unchanged reports whether this version of the object was compared with the same desired state before.
func (a *Applier) unchanged(key object, digest [sha256.Size]byte, desired, observed client.Object) bool {
	last, known := a.applied.Get(key)
	return known && observed.GetResourceVersion() != "" && last == appliedState{digest, observed.GetUID(), observed.GetResourceVersion()} &&
		kube.HasOwners(observed, desired.GetOwnerReferences())
}

// isCurrent reports whether observed has all wanted fields, and no other field that this Applier has applied.
func (a *Applier) isCurrent(key object, digest [sha256.Size]byte, wanted *unstructured.Unstructured, observed client.Object) (bool, error) {
	last, known := a.applied.Get(key)
	known = known && last.uid == observed.GetUID()
	if known && last.digest != digest {
		return false, nil
	}
	have, err := content(observed)
	want := withoutIdentity(wanted.Object)
	if err != nil || !contains(have, want) {
		return false, err
	}
	// An object that this Applier has applied needs no managed fields as proof. Where a server keeps no
	// managed fields, each reconcile would write the object again.
	if !known && !ownsExactly(ownedBy(a.owner, observed, wanted.GetAPIVersion()), want, have) {
		return false, nil
	}
	a.applied.Add(key, appliedState{digest, observed.GetUID(), observed.GetResourceVersion()})
	return true, nil
}

// fields returns the fields of obj as they are sent to the API server.
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

// content returns the fields of an object without status and managed fields. The result may share them with
// the object.
func content(obj client.Object) (map[string]any, error) {
	obj = withoutStatus(obj)
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

// withoutStatus returns a shallow copy of an object without status and managed fields, which are the largest
// fields.
func withoutStatus(obj client.Object) client.Object {
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

func storeInto(stored *unstructured.Unstructured, into client.Object) error {
	if u, ok := into.(*unstructured.Unstructured); ok {
		u.Object = stored.Object
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, into); err != nil {
		return fmt.Errorf("cannot read the applied %s: %w", stored.GetKind(), err)
	}
	return nil
}

// digestOf returns a digest of an object without its owner references and its resource version.
func digestOf(desired client.Object) ([sha256.Size]byte, error) {
	obj := withoutStatus(desired)
	obj.SetOwnerReferences(nil)
	obj.SetResourceVersion("")
	data, err := json.Marshal(obj) // map keys are sorted
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("cannot encode %T %s: %w", desired, desired.GetName(), err)
	}
	return sha256.Sum256(data), nil
}

// labels are the fields outside of metadata in which an empty string is a value. The label of a role has an
// empty value.
var labels = []string{"labels", "annotations", "matchLabels", "nodeLabels"}

// prune returns value without nulls and empty strings. Empty objects and lists stay, because they can be
// intended.
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
