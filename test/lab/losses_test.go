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

func TestHostsMayBeTakenFromTheirNodesOnlyWhenTheyAreGivenUp(t *testing.T) {
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
		objects []client.Object
		server  bool // which no BareMetalHost stands for
		silent  bool
		asked   bool
	}{
		"a server whose Machine lives":                  {objects: []client.Object{owner("node", false)}, server: true},
		"a server whose Machine is being deleted":       {objects: []client.Object{owner("node", true)}, server: true, asked: true},
		"a server whose Machine is gone":                {objects: []client.Object{owner("other", false)}, server: true, asked: true},
		"a server while the API server does not answer": {objects: []client.Object{owner("node", true)}, server: true, silent: true},
		"its Machine lives":                             {objects: []client.Object{host(), machine(false)}},
		"its Machine is being deleted":                  {objects: []client.Object{host(), machine(true)}, asked: true},
		"its Machine is gone":                           {objects: []client.Object{host()}, asked: true},
		"it is being deleted": {objects: []client.Object{
			host(func(h *metal3api.BareMetalHost) { markDeleted(h) }),
			machine(false),
		}, asked: true},
		"it is gone": {objects: []client.Object{machine(false)}, asked: true},
		"it is nobody's": {
			objects: []client.Object{host(func(h *metal3api.BareMetalHost) { h.Spec.ConsumerRef = nil })},
			asked:   true,
		},
		"the API server does not answer": {objects: []client.Object{host(), machine(true)}, silent: true},
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
			g.Expect(isAskedFor(t.Context(), hub, loss)).To(Equal(c.asked))
		})
	}
}

// markDeleted makes an object one that is deleted, and held.
func markDeleted(o client.Object) {
	now := metav1.Now()
	o.SetDeletionTimestamp(&now)
	o.SetFinalizers([]string{"laboratory/hold"})
}
