package lab

import (
	"context"
	"errors"
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

func TestLossOfHostIsRequestedByDeletionOnly(t *testing.T) {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(metal3api.AddToScheme(scheme)).To(Succeed())
	NewWithT(t).Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	scheme.AddKnownTypeWithName(Metal3MachineKind, &unstructured.Unstructured{})

	host := func(change ...func(*metal3api.BareMetalHost)) *metal3api.BareMetalHost {
		h := &metal3api.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "host"}}
		h.Spec.ConsumerRef = &corev1.ObjectReference{Namespace: "lab", Name: "machine"}
		for _, c := range change {
			c(h)
		}
		return h
	}
	machine := func(deleting bool) *unstructured.Unstructured {
		m := &unstructured.Unstructured{}
		m.SetGroupVersionKind(Metal3MachineKind)
		m.SetNamespace("lab")
		m.SetName("machine")
		if deleting {
			markDeleted(m)
		}
		return m
	}
	owner := func(node string, deleting bool) *clusterv1.Machine {
		m := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "machine"},
			Status:     clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: node}},
		}
		if deleting {
			markDeleted(m)
		}
		return m
	}
	for situation, c := range map[string]struct {
		objects   []client.Object
		server    bool // without BareMetalHost
		silent    bool
		requested bool
	}{
		"a server with a Machine":                      {objects: []client.Object{owner("node", false)}, server: true},
		"a server whose Machine is being deleted":      {objects: []client.Object{owner("node", true)}, server: true, requested: true},
		"a server without Machine":                     {objects: []client.Object{owner("other", false)}, server: true, requested: true},
		"a server while the API server is unreachable": {objects: []client.Object{owner("node", true)}, server: true, silent: true},
		"its Machine exists":                           {objects: []client.Object{host(), machine(false)}},
		"its Machine is being deleted":                 {objects: []client.Object{host(), machine(true)}, requested: true},
		"its Machine does not exist":                   {objects: []client.Object{host()}, requested: true},
		"it is being deleted": {objects: []client.Object{
			host(func(h *metal3api.BareMetalHost) { markDeleted(h) }),
			machine(false),
		}, requested: true},
		"it does not exist": {objects: []client.Object{machine(false)}, requested: true},
		"it has no consumer": {
			objects:   []client.Object{host(func(h *metal3api.BareMetalHost) { h.Spec.ConsumerRef = nil })},
			requested: true,
		},
		"the API server is unreachable": {objects: []client.Object{host(), machine(true)}, silent: true},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			hub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.objects...).Build(), interceptor.Funcs{
				Get: func(ctx context.Context, hub client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if c.silent {
						return errors.New("connection refused")
					}
					return hub.Get(ctx, key, object, options...)
				},
				List: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if c.silent {
						return errors.New("connection refused")
					}
					return hub.List(ctx, list, options...)
				},
			})
			loss := hosts.Loss{
				Key: client.ObjectKey{Namespace: "lab", Name: "host"}, Node: "node",
				Cluster: client.ObjectKey{Namespace: "lab", Name: "c1"},
			}
			if c.server {
				loss.Key = client.ObjectKey{}
			}
			g.Expect(isRequested(t.Context(), hub, loss)).To(Equal(c.requested))
		})
	}
}

// markDeleted marks an object as being deleted, with a finalizer.
func markDeleted(o client.Object) {
	now := metav1.Now()
	o.SetDeletionTimestamp(&now)
	o.SetFinalizers([]string{"laboratory/hold"})
}
