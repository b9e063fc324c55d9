package gather

import (
	"context"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/claims"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/sample"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// No phase may take an InfraEnv for missing because the cache does not show it yet.
func TestCreatedInfraEnvIsAFactBeforeTheCacheShowsIt(t *testing.T) {
	g, scheme := NewWithT(t), runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, aiv1beta1.AddToScheme, hivev1.AddToScheme, metal3.AddToScheme,
	} {
		g.Expect(add(scheme)).To(Succeed())
	}
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: "m", UID: sample.MachineUID}}
	machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: bootstrapv1.GroupVersion.Group, Kind: "OpenshiftAssistedConfig", Name: "m",
	}
	config := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: "m", UID: "config-uid"}}
	config.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(machine, clusterv1.GroupVersion.WithKind("Machine"))}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine).WithReturnManagedFields()
	for _, i := range append(informer.Indexes(), informer.HostIndex()) {
		builder = builder.WithIndex(i.Object, i.Field, i.Values)
	}
	c := builder.Build()
	w := writer.New(c, c, clock.RealClock{})
	watch := func(context.Context, *unstructured.Unstructured) error { return nil }
	gatherer := New(w, c, claims.New(c), &atomic.Bool{}, watch)

	created := &aiv1beta1.InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: "m"}}
	created.Labels = map[string]string{bootstrapv1.ConfigNameLabel: "m"}
	w.Created.Record(client.ObjectKeyFromObject(config), created, "")
	s, err := gatherer.Gather(t.Context(), config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.InfraEnvs).To(ConsistOf(HaveField("Name", "m")))
	g.Expect(s.Namesake).To(HaveField("Name", "m"))
	g.Expect(s.Again.Delay()).To(And(BeNumerically(">", 0), BeNumerically("<=", reconcile.CacheLag)))

	// Once the cache has shown the InfraEnv, its absence is a deletion.
	_, err = w.Applier.Apply(t.Context(), created.DeepCopy(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = gatherer.Gather(t.Context(), config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Delete(t.Context(), created)).To(Succeed())
	s, err = gatherer.Gather(t.Context(), config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.InfraEnvs).To(BeEmpty())
	g.Expect(s.Namesake).To(BeNil())
}
