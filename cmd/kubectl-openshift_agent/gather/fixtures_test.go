package gather

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// hub is a management cluster that serves all kinds.
type hub struct {
	// objects are by kind, errors why a kind cannot be read.
	objects map[string][]map[string]any
	errors  map[string]error
	log     LogReader
	// listing is called before a kind is listed. It may be nil.
	listing func(ctx context.Context, kind string)
	// listed are the types in which Secrets were requested.
	listed []string
}

// newHub returns a hub with Cluster lab/ha, Machine m0, and a manager.
func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{objects: map[string][]map[string]any{}, errors: map[string]error{}}
	h.add(t, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {namespace: lab, name: ha, uid: u1, creationTimestamp: "2026-11-29T11:00:00Z", labels: {cluster.x-k8s.io/cluster-name: ha}}
spec: {controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: OpenshiftAssistedControlPlane, name: ha}}
`, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {namespace: lab, name: m0, creationTimestamp: "2026-11-29T11:01:00Z", labels: {cluster.x-k8s.io/cluster-name: ha}}
spec: {clusterName: ha}
`, `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: capi-system, name: capi-controller-manager}
spec: {selector: {matchLabels: {app: capi}}}
`, `
apiVersion: v1
kind: Pod
metadata: {namespace: capi-system, name: capi-0}
status: {containerStatuses: [{name: manager, restartCount: 1}]}
`)
	h.log = func(_ context.Context, _, _ string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(fmt.Sprintf("%s previous=%t\n", options.Container, options.Previous))), nil
	}
	return h
}

// add adds objects.
func (h *hub) add(t *testing.T, documents ...string) {
	t.Helper()
	for _, document := range documents {
		content, err := yaml.YAMLToJSON([]byte(document))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		object := unstructured.Unstructured{}
		NewWithT(t).Expect(object.UnmarshalJSON(content)).To(Succeed())
		h.objects[object.GetKind()] = append(h.objects[object.GetKind()], object.Object)
	}
}

// Get implements client.Reader.
func (h *hub) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	kind := reflect.TypeOf(object).Elem().Name()
	if h.errors[kind] != nil {
		return h.errors[kind]
	}
	for _, o := range h.objects[kind] {
		if u := (unstructured.Unstructured{Object: o}); u.GetName() == key.Name {
			return runtime.DefaultUnstructuredConverter.FromUnstructured(u.DeepCopy().Object, object)
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
}

// List implements client.Reader.
func (h *hub) List(ctx context.Context, list client.ObjectList, _ ...client.ListOption) error {
	kind := reflect.TypeOf(list).Elem().Name()
	if gvk := list.GetObjectKind().GroupVersionKind(); gvk.Kind != "" {
		kind = gvk.Kind
	}
	kind = strings.TrimSuffix(kind, "List")
	if h.listing != nil {
		h.listing(ctx, kind)
	}
	if kind == kindSecret {
		h.listed = append(h.listed, fmt.Sprintf("%T", list))
	}
	if h.errors[kind] != nil {
		return h.errors[kind]
	}
	items := []any{}
	for _, o := range h.objects[kind] {
		items = append(items, (&unstructured.Unstructured{Object: o}).DeepCopy().Object)
	}
	if u, is := list.(*unstructured.UnstructuredList); is {
		for _, item := range items {
			u.Items = append(u.Items, unstructured.Unstructured{Object: item.(map[string]any)})
		}
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"items": items}, list)
}

// options are those of an archive in a new folder.
func options(t *testing.T) Options {
	return Options{
		Namespace: "lab", Cluster: "ha", Output: filepath.Join(t.TempDir(), "ha.tar.gz"), Since: time.Hour,
		LogBytes: 4 << 10, Timeout: time.Minute, Version: "v1", Time: now,
	}
}

// sources are those of the hub.
func (h *hub) sources() Sources { return Sources{API: h, Logs: h.log} }

// write writes an archive, and returns its files without the name of its folder.
func write(t *testing.T, s Sources) map[string]string {
	t.Helper()
	o := options(t)
	_, err := Write(t.Context(), s, o)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return contentOf(t, o.Output)
}

func contentOf(t *testing.T, name string) map[string]string {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(name)
	g.Expect(err).NotTo(HaveOccurred())
	uncompressed, err := gzip.NewReader(bytes.NewReader(content))
	g.Expect(err).NotTo(HaveOccurred())
	files, reader := map[string]string{}, tar.NewReader(uncompressed)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(header.Name).To(MatchRegexp(`^gather-lab-ha-20261129-120000(/[A-Za-z0-9_][A-Za-z0-9._-]*)+$`), "the name leads elsewhere")
		text, err := io.ReadAll(reader)
		g.Expect(err).NotTo(HaveOccurred())
		files[strings.TrimPrefix(header.Name, "gather-lab-ha-20261129-120000/")] = string(text)
	}
}

// forbidden is the answer to a user without rights.
func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("user jane cannot list"))
}

// secret returns a Secret as metadata, with the keys in its managed fields.
const secret = `
apiVersion: v1
kind: Secret
metadata:
  namespace: lab
  name: ha-kubeconfig
  annotations: {kubectl.kubernetes.io/last-applied-configuration: planted}
  managedFields: [{manager: m, fieldsType: FieldsV1, fieldsV1: {"f:data": {".": {}, "f:value": {}}, "f:metadata": {}}}]
data: {value: planted}
`
