package clusterctl

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// objects returns all objects in the namespaces of clusters, by kind and name, without status and managed
// fields.
func (w *world) objects(clusters map[string]*lab.Cluster) map[string]*unstructured.Unstructured {
	w.Helper()
	g := NewWithT(w)
	var namespaces []string
	for _, cluster := range clusters {
		namespaces = append(namespaces, cluster.Namespace)
	}
	api, err := discovery.NewDiscoveryClientForConfig(w.lab.Env.Config())
	g.Expect(err).NotTo(HaveOccurred())
	resources, err := api.ServerPreferredNamespacedResources()
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]*unstructured.Unstructured{}
	for _, group := range resources {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		g.Expect(err).NotTo(HaveOccurred())
		for _, resource := range group.APIResources {
			if !slices.Contains(resource.Verbs, "list") || resource.Kind == "Event" {
				continue
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(version.WithKind(resource.Kind))
			g.Expect(w.lab.Client().List(w.Context(), list)).To(Succeed(), resource.Kind)
			for i := range list.Items {
				if o := &list.Items[i]; slices.Contains(namespaces, o.GetNamespace()) {
					withoutState(o)
					found[fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())] = o
				}
			}
		}
	}
	return found
}

// settledObjects returns the same, once the garbage collector has removed deleted owners. It discovers new
// kinds every 30 s. The topology controller of core creates the objects of a Cluster with a temporary owner.
func (w *world) settledObjects(clusters map[string]*lab.Cluster) map[string]*unstructured.Unstructured {
	w.Helper()
	var found map[string]*unstructured.Unstructured
	NewWithT(w).Eventually(func() []string {
		found = w.objects(clusters)
		return missingOwners(found)
	}).WithTimeout(soon).WithPolling(time.Second).Should(BeEmpty(), "each owner exists")
	return found
}

// missingOwners returns the objects with an owner that is not in the list.
func missingOwners(objects map[string]*unstructured.Unstructured) []string {
	existing := sets.New[types.UID]()
	for _, o := range objects {
		existing.Insert(o.GetUID())
	}
	var missing []string
	for key, o := range objects {
		for _, owner := range o.GetOwnerReferences() {
			if !existing.Has(owner.UID) {
				missing = append(missing, fmt.Sprintf("%s is of %s %s", key, owner.Kind, owner.Name))
			}
		}
	}
	return missing
}

func withoutState(o *unstructured.Unstructured) {
	unstructured.RemoveNestedField(o.Object, "status")
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	if _, fencing := o.GetAnnotations()[fencingSource]; fencing {
		unstructured.RemoveNestedField(o.Object, "data")
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", fencingSource)
	}
}

// fencingSource marks the copied BMC credentials of a fenced host. The new release deletes those of installed
// hosts; the previous one keeps them.
const fencingSource = "bootstrap.cluster.x-k8s.io/fencing-source"

// changes returns the objects that differ or exist on one side only.
func changes(before, after map[string]*unstructured.Unstructured) ([]string, error) {
	var found []string
	for key, o := range before {
		if after[key] == nil {
			found = append(found, key+" is missing")
			continue
		}
		was, err := o.MarshalJSON()
		if err != nil {
			return nil, err
		}
		is, err := after[key].MarshalJSON()
		if err != nil {
			return nil, err
		}
		patch, err := jsonpatch.CreateMergePatch(was, is)
		if err != nil {
			return nil, err
		}
		if string(patch) != "{}" {
			found = append(found, key+" was changed: "+string(patch))
		}
	}
	for key := range after {
		if before[key] == nil {
			found = append(found, key+" is new")
		}
	}
	return found, nil
}

func TestChanges(t *testing.T) {
	object := func(labels map[string]string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
		o.SetLabels(labels)
		return o
	}
	was := map[string]*unstructured.Unstructured{"Secret lab/a": object(nil), "Secret lab/b": object(nil), "Secret lab/c": object(nil)}
	is := map[string]*unstructured.Unstructured{
		"Secret lab/a": object(nil), "Secret lab/b": object(map[string]string{"x": "y"}),
		"Secret lab/d": object(nil),
	}
	NewWithT(t).Expect(changes(was, was)).To(BeEmpty())
	NewWithT(t).Expect(changes(was, is)).To(ConsistOf(`Secret lab/b was changed: {"metadata":{"labels":{"x":"y"}}}`,
		"Secret lab/c is missing", "Secret lab/d is new"))
}

func TestMissingOwners(t *testing.T) {
	object := func(uid types.UID, owners ...types.UID) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
		o.SetUID(uid)
		var references []metav1.OwnerReference
		for _, owner := range owners {
			references = append(references, metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "of-" + string(owner), UID: owner})
		}
		o.SetOwnerReferences(references)
		return o
	}
	objects := map[string]*unstructured.Unstructured{
		"Secret lab/a": object("a"), "Secret lab/b": object("b", "a"),
		"Secret lab/c": object("c", "a", "shim"),
	}
	NewWithT(t).Expect(missingOwners(objects)).To(ConsistOf("Secret lab/c is of Secret of-shim"))
	delete(objects, "Secret lab/c")
	NewWithT(t).Expect(missingOwners(objects)).To(BeEmpty())
}

// The metrics of the managers with their pending and completed work.
var (
	queued     = regexp.MustCompile(`(?m)^(workqueue_depth|controller_runtime_active_workers)\{.*\} [1-9]`)
	reconciled = regexp.MustCompile(`(?m)^controller_runtime_reconcile_total\{.*\} [1-9]`)
)

// awaitReconciled waits until our managers have reconciled all objects and their queues are empty.
func (w *world) awaitReconciled() {
	w.Helper()
	for _, name := range []string{env.Bootstrap, env.ControlPlane} {
		NewWithT(w).Eventually(func(g Gomega) {
			metrics, err := w.metrics(name)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(metrics).To(MatchRegexp(reconciled.String()))
			g.Expect(queued.FindString(metrics)).To(BeEmpty())
		}).WithTimeout(soon).WithPolling(time.Second).MustPassRepeatedly(3).Should(Succeed(), name)
	}
}
