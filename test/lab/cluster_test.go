package lab

import (
	"context"
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

func TestWaitConfirmsCachedStateWithAPIServer(t *testing.T) {
	c := &Cluster{Namespace: "lab", Name: "c1"}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1.AddToScheme, metal3api.AddToScheme, hiveext.AddToScheme,
		aiv1beta1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme,
	} {
		NewWithT(t).Expect(add(scheme)).To(Succeed())
	}
	scheme.AddKnownTypeWithName(Metal3MachineKind, &unstructured.Unstructured{})
	with := func(paused bool, reads *int) client.Reader {
		cluster := &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name},
			Spec:       clusterv1.ClusterSpec{Paused: &paused},
		}
		return interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster).Build(), interceptor.Funcs{
			Get: func(ctx context.Context, behind client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				*reads++
				return behind.Get(ctx, key, object, options...)
			},
		})
	}
	for situation, w := range map[string]struct{ watched, there, done bool }{
		"it is":           {watched: true, there: true, done: true},
		"it is no more":   {watched: true},
		"it is not known": {there: true},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			var ofWatched, ofThere int
			g.Expect(c.isDone(t.Context(), func(s *State) bool { return *s.Cluster.Spec.Paused }, with(w.watched, &ofWatched),
				with(w.there, &ofThere))).To(Equal(w.done))
			g.Expect(ofWatched).NotTo(BeZero())
			g.Expect(ofThere).To(Equal(map[bool]int{true: 3}[w.watched]), "reads of the API server, once the cache has the state")
		})
	}
}
