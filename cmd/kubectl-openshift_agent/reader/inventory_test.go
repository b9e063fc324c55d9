package reader

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// withMetal3 returns an API with Metal3Machine lab/m0-infra, and one of the same name in another namespace.
func withMetal3(t *testing.T, funcs interceptor.Funcs) client.Client {
	t.Helper()
	scheme, err := NewScheme()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	kind := clusterv1.GroupVersionInfrastructure.WithKind(infraMachine.Kind)
	scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(infraMachine.Kind+"List"), &unstructured.UnstructuredList{})
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{clusterv1.GroupVersionInfrastructure})
	mapper.Add(kind, meta.RESTScopeNamespace)
	infra := &unstructured.Unstructured{}
	infra.SetGroupVersionKind(kind)
	infra.SetNamespace("lab")
	infra.SetName("m0-infra")
	other := infra.DeepCopy()
	other.SetNamespace("other")
	return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(append(objects(), infra, other)...).
		WithInterceptorFuncs(funcs).Build()
}

func TestInventoryOfANamespace(t *testing.T) {
	g := NewWithT(t)
	i, err := ReadInventory(t.Context(), withMetal3(t, interceptor.Funcs{}), "lab", "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(i.NotReadable).To(BeEmpty())
	g.Expect(i.Hosts).To(ConsistOf(HaveField("Name", "free"), HaveField("Name", "rack0")))
	g.Expect(i.Machines).To(HaveLen(2))
	g.Expect(i.Configs).To(HaveLen(1))
	g.Expect(i.InfraMachines).To(HaveLen(1))
	g.Expect(client.ObjectKeyFromObject(&i.InfraMachines[0])).To(Equal(client.ObjectKey{Namespace: "lab", Name: "m0-infra"}))

	i, err = ReadInventory(t.Context(), withMetal3(t, interceptor.Funcs{}), "lab", "ha")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(i.Machines).To(ConsistOf(HaveField("Name", "m0")))
	g.Expect(i.Hosts).To(HaveLen(2), "a host of the namespace may be used by any cluster")
	_, err = ReadInventory(t.Context(), withMetal3(t, interceptor.Funcs{}), "lab", "none")
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
}

// With an incomplete list the output would state that no host fits.
func TestIncompleteInventoryIsAnError(t *testing.T) {
	for message, is := range map[string]func(client.ObjectList) bool{
		"cannot list the BareMetalHosts": func(l client.ObjectList) bool { _, is := l.(*metal3.HostList); return is },
		"cannot list the Metal3Machines": func(l client.ObjectList) bool { _, is := l.(*unstructured.UnstructuredList); return is },
		"cannot list the Machines":       func(l client.ObjectList) bool { _, is := l.(*clusterv1.MachineList); return is },
		"":                               func(l client.ObjectList) bool { _, is := l.(*bootstrapv1.OpenshiftAssistedConfigList); return is },
	} {
		g := NewWithT(t)
		i, err := ReadInventory(t.Context(), withMetal3(t, interceptor.Funcs{
			List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if is(list) {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no"))
				}
				return api.List(ctx, list, options...)
			},
		}), "lab", "")
		if message != "" {
			g.Expect(err).To(MatchError(ContainSubstring(message)))
			continue
		}
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(i.NotReadable).To(Equal(map[string]string{snapshot.KindConfig: snapshot.NoPermission}))
	}
}

func TestHubWithoutMetal3(t *testing.T) {
	_, err := ReadInventory(t.Context(), newClient(t, interceptor.Funcs{}), "lab", "")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("cannot list the Metal3Machines: no matches for kind")))
}

func TestNumberOfMetal3MachinesIsBounded(t *testing.T) {
	g := NewWithT(t)
	pages := 0
	_, err := ReadInventory(t.Context(), withMetal3(t, interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			machines, is := list.(*unstructured.UnstructuredList)
			if !is {
				return api.List(ctx, list, options...)
			}
			if pages++; pages > 2*maxObjects/pageSize {
				return errors.New("the pages are read without end")
			}
			machines.Items = make([]unstructured.Unstructured, pageSize)
			machines.SetContinue("x")
			return nil
		},
	}), "lab", "")
	g.Expect(err).To(MatchError(ContainSubstring("more than 20000 objects exist")))
	g.Expect(pages).To(Equal(maxObjects / pageSize))
}
