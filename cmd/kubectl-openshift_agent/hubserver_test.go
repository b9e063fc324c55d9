package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/reader"
)

// hubServer serves discovery, and the objects that a test puts, over HTTP: the program itself connects to it. It ignores
// selectors and pages.
type hubServer struct {
	*httptest.Server

	scheme *runtime.Scheme
	mu     sync.Mutex
	// objects are by resource and by name.
	objects map[schema.GroupVersionResource]map[string]*unstructured.Unstructured
	kinds   map[schema.GroupVersionResource]schema.GroupVersionKind
}

// newHubServer returns a hub that serves all kinds that status reads, and has no objects.
func newHubServer(t *testing.T) *hubServer {
	t.Helper()
	g := NewWithT(t)
	scheme, err := reader.NewScheme()
	g.Expect(err).NotTo(HaveOccurred())
	h := &hubServer{
		scheme: scheme, objects: map[schema.GroupVersionResource]map[string]*unstructured.Unstructured{},
		kinds: map[schema.GroupVersionResource]schema.GroupVersionKind{},
	}
	for kind := range scheme.AllKnownTypes() {
		if scheme.IsGroupRegistered(kind.Group) && scheme.Recognizes(kind.GroupVersion().WithKind(kind.Kind+"List")) {
			resource, _ := meta.UnsafeGuessKindToResource(kind)
			h.kinds[resource], h.objects[resource] = kind, map[string]*unstructured.Unstructured{}
		}
	}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

// put adds or replaces objects.
func (h *hubServer) put(t *testing.T, objects ...client.Object) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, object := range objects {
		kind, err := apiutil.GVKForObject(object, h.scheme)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(kind)
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		h.objects[resource][object.GetName()] = u
	}
}

// remove removes objects by the name of their resource.
func (h *hubServer) remove(resource string, names ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for found, objects := range h.objects {
		if found.Resource == resource {
			for _, name := range names {
				delete(objects, name)
			}
		}
	}
}

// ServeHTTP implements http.Handler.
func (h *hubServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	answer := h.answer(strings.Split(strings.Trim(r.URL.Path, "/"), "/"))
	if answer == nil {
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	content, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(content)
}

// answer returns the object for a path; nil if none exists.
func (h *hubServer) answer(path []string) any {
	switch {
	case len(path) == 1 && path[0] == "api":
		return &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case len(path) == 1 && path[0] == "apis":
		return h.groups()
	case len(path) == 3 && path[0] == "apis":
		return h.resources(schema.GroupVersion{Group: path[1], Version: path[2]})
	case len(path) < 6 || path[3] != "namespaces":
		return nil
	}
	resource := schema.GroupVersionResource{Group: path[1], Version: path[2], Resource: path[5]}
	if len(path) == 7 {
		return h.object(resource, path[6])
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{}}
	list.SetGroupVersionKind(h.kinds[resource].GroupVersion().WithKind(h.kinds[resource].Kind + "List"))
	for _, name := range slices.Sorted(maps.Keys(h.objects[resource])) {
		list.Items = append(list.Items, *h.objects[resource][name])
	}
	return list
}

// object returns an object; nil if it does not exist.
func (h *hubServer) object(resource schema.GroupVersionResource, name string) any {
	if o, exists := h.objects[resource][name]; exists {
		return o
	}
	return nil
}

func (h *hubServer) groups() *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	versions := map[schema.GroupVersion]bool{}
	for resource := range h.kinds {
		version := resource.GroupVersion()
		if versions[version] {
			continue
		}
		versions[version] = true
		served := metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: version.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{
			Name: version.Group, Versions: []metav1.GroupVersionForDiscovery{served}, PreferredVersion: served,
		})
	}
	return list
}

func (h *hubServer) resources(version schema.GroupVersion) *metav1.APIResourceList {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version.String()}
	for resource, kind := range h.kinds {
		if resource.GroupVersion() == version {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: resource.Resource, Kind: kind.Kind, Namespaced: true, Verbs: metav1.Verbs{"get", "list"},
			})
		}
	}
	return list
}
