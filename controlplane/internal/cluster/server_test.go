package cluster

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
)

// apiServer accepts a token, and serves only those objects of an installed cluster that are read.
type apiServer struct {
	*httptest.Server
	t     *testing.T
	token string

	mu sync.Mutex
	// objects are the objects of a path, by name. A path without entry is not served. Requests for a path in
	// refuse, and watches of a path in refuseWatch, are forbidden.
	objects             map[string]map[string]client.Object
	refuse, refuseWatch map[string]bool
	// draining is true while the server closes connections gracefully after requests for its version.
	draining bool
	// refusing is the number of following requests that get 401.
	refusing int
	// blockWatch is a path whose watches get no response.
	blockWatch string
	// etcd is the HTTP status of the etcd health check.
	etcd atomic.Int32
	// watches are the running watches by path. received are the requests that were received.
	watches  map[string][]chan watchEventOf
	received []string
	// resumed are the requests over a connection with a resumed TLS session.
	resumed []string
	version int
}

// watchEventOf is an event that the server sends.
type watchEventOf struct {
	Type   string `json:"type"`
	Object any    `json:"object"`
}

const (
	nodesPath        = "/api/v1/nodes"
	secretsPath      = "/api/v1/namespaces/kube-system/secrets"
	versionsPath     = "/apis/config.openshift.io/v1/clusterversions"
	operatorsPath    = "/apis/config.openshift.io/v1/clusteroperators"
	apiServerCAsPath = "/api/v1/namespaces/openshift-config-managed/configmaps"
	poolsPath        = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools"
)

var listKinds = map[string]schema.GroupVersionKind{
	nodesPath: corev1.SchemeGroupVersion.WithKind("NodeList"), secretsPath: corev1.SchemeGroupVersion.WithKind("SecretList"),
	versionsPath: configv1.GroupVersion.WithKind("ClusterVersionList"), operatorsPath: configv1.GroupVersion.WithKind("ClusterOperatorList"),
	poolsPath:     machineconfigurationv1.GroupVersion.WithKind("MachineConfigPoolList"),
	requestsPath:  certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequestList"),
	serverCAsPath: corev1.SchemeGroupVersion.WithKind("ConfigMapList"), rootCAsPath: corev1.SchemeGroupVersion.WithKind("ConfigMapList"),
}

// newAPIServer serves a healthy cluster with one Node.
func newAPIServer(t *testing.T, token string) *apiServer {
	t.Helper()
	s := &apiServer{
		t: t, token: token, refuse: map[string]bool{}, refuseWatch: map[string]bool{},
		watches: map[string][]chan watchEventOf{}, objects: map[string]map[string]client.Object{
			nodesPath: {}, secretsPath: {}, versionsPath: {}, operatorsPath: {}, requestsPath: {}, serverCAsPath: {}, rootCAsPath: {},
			poolsPath: {}, apiServerCAsPath: {},
		},
	}
	s.put(nodesPath, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0", UID: "n0", Labels: map[string]string{"metal3.io/uuid": "h0"}}})
	s.put(versionsPath, clusterVersionOf("4.19.3"))
	s.put(operatorsPath, operatorOf("etcd", configv1.ConditionTrue))
	s.put(operatorsPath, operatorOf("kube-apiserver", configv1.ConditionTrue))
	s.put(operatorsPath, operatorOf("console", configv1.ConditionTrue))
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func clusterVersionOf(release string) *configv1.ClusterVersion {
	return &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Status: configv1.ClusterVersionStatus{
		History:    []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: release, Image: "release:" + release}},
		Conditions: []configv1.ClusterOperatorStatusCondition{{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue}},
	}}
}

func operatorOf(name string, available configv1.ConditionStatus) *configv1.ClusterOperator {
	return &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: configv1.ClusterOperatorStatus{
		Conditions: []configv1.ClusterOperatorStatusCondition{{Type: configv1.OperatorAvailable, Status: available, Reason: "Test"}},
	}}
}

func boundSecret(uid string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "kube-system", Name: uid, UID: types.UID(uid),
		Labels: map[string]string{"app.kubernetes.io/managed-by": "cluster-api-provider-openshift-agent"},
	}}
}

// apply creates or changes an object.
func (s *apiServer) put(path string, obj client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	obj.SetResourceVersion(strconv.Itoa(s.version))
	change := "ADDED"
	if s.objects[path][obj.GetName()] != nil {
		change = "MODIFIED"
	}
	s.objects[path][obj.GetName()] = obj
	s.send(path, change, obj)
}

// remove deletes an object.
func (s *apiServer) remove(path, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	obj := s.objects[path][name]
	delete(s.objects[path], name)
	obj.SetResourceVersion(strconv.Itoa(s.version))
	s.send(path, "DELETED", obj)
}

// send sends the metadata of an object to all watches of a path. The caller holds the lock.
func (s *apiServer) send(path, change string, obj client.Object) {
	annotations := map[string]string{"large": strings.Repeat("x", 9000)}
	maps.Copy(annotations, obj.GetAnnotations())
	meta := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: obj.GetName(), UID: obj.GetUID(), Labels: obj.GetLabels(), ResourceVersion: obj.GetResourceVersion(), Annotations: annotations,
	}}
	for _, watch := range s.watches[path] {
		watch <- watchEventOf{change, meta}
	}
}

// endWatches ends the watches of a path, with an error unless that is nil.
func (s *apiServer) endWatches(path string, problem *metav1.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, watch := range s.watches[path] {
		if problem != nil {
			watch <- watchEventOf{"ERROR", problem}
		}
		close(watch)
	}
	s.watches[path] = nil
}

// set changes the state of the server.
func (s *apiServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *apiServer) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

func (s *apiServer) watched(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watches[path])
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	token := s.token
	if s.refusing > 0 {
		s.refusing--
		token = ""
	}
	received := strings.TrimSpace(r.Method + " " + r.URL.Path + " " + r.URL.Query().Get("watch") + r.URL.Query().Get("fieldSelector"))
	s.received = append(s.received, received)
	if r.TLS.DidResume {
		s.resumed = append(s.resumed, received)
	}
	s.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+token {
		http.Error(w, "unknown token", http.StatusUnauthorized)
		return
	}
	if r.URL.Path == "/version" {
		s.set(func() {
			if s.draining {
				w.Header().Set("Connection", "close")
			}
		})
		answer(w, version.Info{GitVersion: "v1.32.6"})
		return
	}
	if r.URL.Path == "/readyz/etcd" {
		http.Error(w, "etcd failed", int(s.etcd.Load()))
		return
	}
	if r.URL.Query().Get("watch") == "true" {
		s.watch(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.find(r.URL.Path, r.URL.Query().Get("fieldSelector"))
	if list, isList := found.(map[string]any); isList {
		page(list, r.URL.Query())
	}
	if list, isList := found.(map[string]any); isList && strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
		list["kind"], list["apiVersion"] = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	answer(w, found)
}

// find returns the object or list at a path. A field selector selects objects of a list by name. The caller
// holds the lock.
func (s *apiServer) find(path, selector string) any {
	for of, objects := range s.objects {
		name, single := strings.CutPrefix(path, of+"/")
		switch {
		case path != of && !single:
			continue
		case s.refuse[of]:
			return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
		case single && objects[name] != nil:
			return objects[name]
		case !single:
			items := slices.Collect(maps.Values(objects))
			if only, selects := strings.CutPrefix(selector, "metadata.name="); selects {
				items = slices.DeleteFunc(items, func(obj client.Object) bool { return obj.GetName() != only })
			}
			kind := listKinds[of]
			return map[string]any{
				"kind": kind.Kind, "apiVersion": kind.GroupVersion().String(),
				"metadata": metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}, "items": items,
			}
		}
	}
	return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}
}

// page reduces a list to the requested page. The token of the next page is the number of the objects before
// it.
func page(list map[string]any, received url.Values) {
	items := list["items"].([]client.Object)          //nolint:forcetypeassert // of find
	meta := list["metadata"].(metav1.ListMeta)        //nolint:forcetypeassert // of find
	from, _ := strconv.Atoi(received.Get("continue")) // none: the first
	limit, _ := strconv.Atoi(received.Get("limit"))
	slices.SortFunc(items, func(a, b client.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	if items = items[from:]; limit > 0 && len(items) > limit {
		items, meta.Continue = items[:limit], strconv.Itoa(from+limit)
	}
	list["items"], list["metadata"] = items, meta
}

func answer(w http.ResponseWriter, content any) {
	w.Header().Set("Content-Type", "application/json")
	if status, failed := content.(*metav1.Status); failed {
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		w.WriteHeader(int(status.Code))
	}
	send(w, named(content))
}

// send writes JSON. Errors of closed connections are ignored.
func send(w http.ResponseWriter, content any) {
	if encoded, err := json.Marshal(content); err == nil {
		_, _ = w.Write(append(encoded, '\n'))
	}
}

// named adds kind and version, which clients need to decode an object.
func named(content any) any {
	obj, ok := content.(client.Object)
	if !ok {
		return content
	}
	kinds, _, err := conn.Scheme.ObjectKinds(obj)
	if err == nil {
		obj = obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of one
		obj.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	return obj
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == s.blockWatch {
		<-r.Context().Done()
		return
	}
	events := make(chan watchEventOf, 100)
	s.mu.Lock()
	refused := s.find(r.URL.Path, "")
	if s.refuseWatch[r.URL.Path] {
		refused = &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	}
	if s.refuse[r.URL.Path] || s.refuseWatch[r.URL.Path] || s.objects[r.URL.Path] == nil {
		s.mu.Unlock()
		answer(w, refused)
		return
	}
	s.watches[r.URL.Path] = append(s.watches[r.URL.Path], events)
	s.mu.Unlock()
	NewWithT(s.t).Expect(r.Header.Get("Accept")).To(Equal(metadataOnly))
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush() //nolint:forcetypeassert // HTTP
	for {
		select {
		case <-r.Context().Done():
			s.set(func() {
				s.watches[r.URL.Path] = slices.DeleteFunc(s.watches[r.URL.Path], func(c chan watchEventOf) bool { return c == events })
			})
			return
		case e, more := <-events:
			if !more {
				return
			}
			send(w, e)
			w.(http.Flusher).Flush() //nolint:forcetypeassert // HTTP
		}
	}
}
