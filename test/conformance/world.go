package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type (
	kind   = schema.GroupVersionKind
	object = unstructured.Unstructured
)

var (
	clusterKind     = clusterv1.GroupVersion.WithKind("Cluster")
	machineKind     = clusterv1.GroupVersion.WithKind("Machine")
	deploymentKind  = clusterv1.GroupVersion.WithKind("MachineDeployment")
	healthCheckKind = clusterv1.GroupVersion.WithKind("MachineHealthCheck")
	secretKind      = corev1.SchemeGroupVersion.WithKind("Secret")
	configMapKind   = corev1.SchemeGroupVersion.WithKind("ConfigMap")
)

const (
	capiGroup     = "cluster.x-k8s.io"
	contractLabel = capiGroup + "/v1beta2"
)

// world is a management cluster as the suite sees it.
type world struct {
	hub    Hub
	client client.WithWatch
	// kinds are all kinds of objects that a cluster has.
	kinds []kind
}

// newWorld connects to a hub; further kinds are those of the provider.
func newWorld(ctx context.Context, hub Hub, further []kind) world {
	GinkgoHelper()
	c, err := client.NewWithWatch(hub.Config(), client.Options{Scheme: newScheme()})
	Expect(err).NotTo(HaveOccurred())
	return world{hub: hub, client: c, kinds: append(kindsOf(ctx, c), further...)}
}

func (w world) createNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := w.client.Create(ctx, namespace); !apierrors.IsAlreadyExists(err) {
		Expect(err).NotTo(HaveOccurred())
	}
}

// crd reads the CRD of a kind.
func (w world) crd(ctx context.Context, k kind) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	mapping, err := w.client.RESTMapper().RESTMapping(k.GroupKind(), k.Version)
	Expect(err).NotTo(HaveOccurred())
	crd := &apiextensionsv1.CustomResourceDefinition{}
	Expect(w.client.Get(ctx, types.NamespacedName{Name: mapping.Resource.Resource + "." + k.Group}, crd)).To(Succeed())
	return crd
}

// kindsOf returns the kinds of Cluster API and its providers, Secrets and ConfigMaps.
func kindsOf(ctx context.Context, c client.Client) []kind {
	GinkgoHelper()
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	Expect(c.List(ctx, list)).To(Succeed())
	kinds := []kind{secretKind, configMapKind}
	for _, crd := range list.Items {
		if crd.Spec.Group != capiGroup && !strings.HasSuffix(crd.Spec.Group, "."+capiGroup) || crd.Spec.Scope != apiextensionsv1.NamespaceScoped {
			continue
		}
		for _, version := range crd.Spec.Versions {
			if version.Storage {
				kinds = append(kinds, kind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind})
			}
		}
	}
	return kinds
}

// get reads an object; nil if it does not exist.
func (w world) get(ctx context.Context, k kind, key types.NamespacedName) *object {
	GinkgoHelper()
	found := &object{}
	found.SetGroupVersionKind(k)
	err := w.client.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return found
}

func (w world) list(ctx context.Context, k kind, namespace string, options ...client.ListOption) []object {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k)
	Expect(w.client.List(ctx, list, append(options, client.InNamespace(namespace))...)).To(Succeed())
	return list.Items
}

// all reads every object of a namespace, except for those that Kubernetes itself creates.
func (w world) all(ctx context.Context, namespace string) []object {
	GinkgoHelper()
	var objects []object
	for _, k := range w.kinds {
		for _, found := range w.list(ctx, k, namespace) {
			if found.GetName() != "kube-root-ca.crt" {
				objects = append(objects, found)
			}
		}
	}
	return objects
}

// versions returns the resource versions of all objects in the namespaces.
func (w world) versions(ctx context.Context, namespaces ...string) map[string]string {
	GinkgoHelper()
	result := map[string]string{}
	for _, namespace := range namespaces {
		for _, k := range w.kinds {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(k)
			Expect(w.client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
			for _, found := range list.Items {
				result[fmt.Sprintf("%s %s/%s", k.Kind, namespace, found.Name)] = found.ResourceVersion
			}
		}
	}
	return result
}

// settled waits until all deferred writes are done, and returns the resource versions.
func (w world) settled(ctx context.Context, namespaces ...string) map[string]string {
	GinkgoHelper()
	return w.unchanged(ctx, held, namespaces...)
}

// calm waits until the reactions to the last change have been written.
func (w world) calm(ctx context.Context, namespaces ...string) {
	GinkgoHelper()
	w.unchanged(ctx, still/2, namespaces...)
}

// unchanged waits until nothing in the namespaces was written for a while, and returns the resource versions.
func (w world) unchanged(ctx context.Context, duration time.Duration, namespaces ...string) map[string]string {
	GinkgoHelper()
	before, since := w.versions(ctx, namespaces...), time.Now()
	Eventually(func() time.Duration {
		if after := w.versions(ctx, namespaces...); !maps.Equal(after, before) {
			before, since = after, time.Now()
		}
		return time.Since(since)
	}).WithContext(ctx).WithTimeout(2 * soon).WithPolling(duration / 4).Should(BeNumerically(">=", duration))
	return before
}

// resolve reads the object of a reference of a Machine or Cluster.
func (w world) resolve(ctx context.Context, ref clusterv1.ContractVersionedObjectReference, namespace string) *object {
	GinkgoHelper()
	mapping, err := w.client.RESTMapper().RESTMapping(schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind})
	Expect(err).NotTo(HaveOccurred())
	return w.get(ctx, mapping.GroupVersionKind, types.NamespacedName{Namespace: namespace, Name: ref.Name})
}

func (w world) cluster(ctx context.Context, f *fixture) *clusterv1.Cluster {
	GinkgoHelper()
	cluster := &clusterv1.Cluster{}
	Expect(w.client.Get(ctx, f.Key(), cluster)).To(Succeed())
	return cluster
}

// controlPlane reads the control plane of a cluster.
func (w world) controlPlane(ctx context.Context, f *fixture) *object {
	GinkgoHelper()
	controlPlane := w.resolve(ctx, w.cluster(ctx, f).Spec.ControlPlaneRef, f.namespace)
	Expect(controlPlane).NotTo(BeNil(), "the control plane of %s", f.Key())
	return controlPlane
}

// machines returns the Machines of a cluster: those of the control plane, and workers.
func (w world) machines(ctx context.Context, f *fixture) (controlPlane, workers []clusterv1.Machine) {
	GinkgoHelper()
	list := &clusterv1.MachineList{}
	Expect(w.client.List(ctx, list, client.InNamespace(f.namespace))).To(Succeed())
	for _, m := range list.Items {
		switch _, found := m.Labels[clusterv1.MachineControlPlaneLabel]; {
		case m.Spec.ClusterName != f.Key().Name:
		case found:
			controlPlane = append(controlPlane, m)
		default:
			workers = append(workers, m)
		}
	}
	return controlPlane, workers
}

// configs returns the bootstrap configs of Machines.
func (w world) configs(ctx context.Context, machines []clusterv1.Machine) []*object {
	GinkgoHelper()
	var configs []*object
	for _, m := range machines {
		config := w.resolve(ctx, m.Spec.Bootstrap.ConfigRef, m.Namespace)
		Expect(config).NotTo(BeNil(), "the config of Machine %s", m.Name)
		configs = append(configs, config)
	}
	return configs
}

// patch merges JSON into an object, as a user does.
func (w world) patch(ctx context.Context, target client.Object, json string, args ...any) {
	GinkgoHelper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, json, args...))
	Expect(w.client.Patch(ctx, target.DeepCopyObject().(client.Object), patch)).To(Succeed())
}

// patchStatus merges JSON into the status of an object.
func (w world) patchStatus(ctx context.Context, target client.Object, json string, args ...any) {
	GinkgoHelper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, json, args...))
	Expect(w.client.Status().Patch(ctx, target.DeepCopyObject().(client.Object), patch)).To(Succeed())
}

// title names an object.
func title(o client.Object) string {
	return fmt.Sprintf("%s %s/%s", o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName())
}

// at returns a field; nil if it does not exist.
func at(o *object, fields ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, fields...)
	return value
}

func text(o *object, fields ...string) string {
	value, _ := at(o, fields...).(string)
	return value
}

// conditions returns the conditions of an object in the form of the contract.
func conditions(o *object) []metav1.Condition {
	var status struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &status); err != nil {
		return nil
	}
	return status.Status.Conditions
}

func condition(o *object, name string) metav1.Condition {
	return find(conditions(o), name)
}

// journal is the history of the objects in a namespace.
type journal struct {
	mu      sync.Mutex
	entries []entry
}

type entry struct {
	*object
	deleted bool
	// version orders entries of all kinds: all objects are in one etcd.
	version uint64
}

// follow records all events of the kinds in a namespace.
func (w world) follow(ctx context.Context, namespace string, kinds ...kind) *journal {
	GinkgoHelper()
	j := &journal{}
	for _, k := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k)
		events, err := w.client.Watch(ctx, list, client.InNamespace(namespace))
		Expect(err).NotTo(HaveOccurred())
		go j.write(events)
	}
	return j
}

func (j *journal) write(events watch.Interface) {
	for event := range events.ResultChan() {
		o, ok := event.Object.(*object)
		if !ok {
			continue
		}
		version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
		if err != nil {
			continue
		}
		j.mu.Lock()
		j.entries = append(j.entries, entry{object: o, deleted: event.Type == watch.Deleted, version: version})
		j.mu.Unlock()
	}
}

// of returns the entries of a kind, oldest first.
func (j *journal) of(k kind) []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	entries := slices.DeleteFunc(slices.Clone(j.entries), func(e entry) bool { return e.GetKind() != k.Kind })
	slices.SortStableFunc(entries, func(a, b entry) int { return int(int64(a.version) - int64(b.version)) })
	return entries
}

// first returns the first entry of a kind for which is returns true; nil: there is none.
func (j *journal) first(k kind, is func(entry) bool) *entry {
	entries := j.of(k)
	if i := slices.IndexFunc(entries, is); i >= 0 {
		return &entries[i]
	}
	return nil
}
