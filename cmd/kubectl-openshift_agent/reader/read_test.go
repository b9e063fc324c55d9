package reader

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

var readAt = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// named returns the metadata of an object of Cluster ha.
func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "lab", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "ha"}}
}

// objects are Cluster ha with one Machine, and objects that do not belong to it.
func objects() []client.Object {
	cluster := &clusterv1.Cluster{ObjectMeta: named("ha")}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: controlplanev1.GroupVersion.Group, Kind: snapshot.KindControlPlane, Name: "ha-cp",
	}
	kubeadm := &clusterv1.Cluster{ObjectMeta: named("kubeadm")}
	kubeadm.Spec.ControlPlaneRef.Kind = "KubeadmControlPlane"
	controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "ha-cp"}}
	machine := &clusterv1.Machine{ObjectMeta: named("m0")}
	machine.Spec.ClusterName, machine.Spec.Bootstrap.ConfigRef.Name, machine.Spec.InfrastructureRef.Name = "ha", "m0-config", "m0-infra"
	machine.Spec.InfrastructureRef.Kind = metal3.MachineKind
	foreign := &clusterv1.Machine{ObjectMeta: named("other")}
	foreign.Labels[clusterv1.ClusterNameLabel], foreign.Spec.ClusterName = "other", "other"
	config := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: named("m0-config")}
	config.Status.AgentRef = &corev1.LocalObjectReference{Name: "agent0"}
	return []client.Object{
		cluster, kubeadm, controlPlane, machine, foreign, config,
		&metal3.Host{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "free"}},
		&metal3.Host{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "rack0"},
			Spec:       metal3.HostSpec{ConsumerRef: &metal3.Consumer{Kind: metal3.MachineKind, Name: "m0-infra"}},
		},
		&aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "agent0"}},
		&aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "agent1"}},
	}
}

func newClient(t *testing.T, funcs interceptor.Funcs) client.Client {
	t.Helper()
	scheme, err := NewScheme()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects()...).WithInterceptorFuncs(funcs).Build()
}

func TestClusterIsReadWithItsObjects(t *testing.T) {
	g := NewWithT(t)
	s, err := Read(t.Context(), newClient(t, interceptor.Funcs{}), Scope{Namespace: "lab", Cluster: "ha", Hosts: true}, readAt)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.NotReadable).To(BeEmpty())
	g.Expect(s.All()).To(HaveLen(1))
	c := s.All()[0]
	g.Expect(c.Name).To(Equal("ha"))
	g.Expect(c.ControlPlane).To(HaveField("Name", "ha-cp"))
	g.Expect(c.Machines).To(HaveLen(1), "no Machine of another cluster")
	m := c.Machines[0]
	g.Expect([]string{m.Name, m.Config.Name, m.Host.Name, m.Agent.Name}).To(Equal([]string{"m0", "m0-config", "rack0", "agent0"}))
	g.Expect(s.Hosts).To(HaveLen(1), "a snapshot contains no other hosts")
	g.Expect(s.Agents).To(HaveLen(1))
}

func TestHostsAreReadOnRequest(t *testing.T) {
	g := NewWithT(t)
	s, err := Read(t.Context(), newClient(t, interceptor.Funcs{}), Scope{}, readAt)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.All()).To(ConsistOf(HaveField("Name", "ha")), "other control planes are not shown")
	g.Expect(s.All()[0].Machines).To(HaveLen(1))
	g.Expect(s.Hosts).To(BeEmpty())

	names, err := Names(t.Context(), newClient(t, interceptor.Funcs{}), "lab")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names).To(Equal([]string{"ha"}))
}

func TestForeignControlPlaneIsAnError(t *testing.T) {
	_, err := Read(t.Context(), newClient(t, interceptor.Funcs{}), Scope{Namespace: "lab", Cluster: "kubeadm"}, readAt)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("is a KubeadmControlPlane")))
}

func TestManagedFieldsAreDropped(t *testing.T) {
	g := NewWithT(t)
	api := newClient(t, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if machines, is := list.(*clusterv1.MachineList); is {
				machines.Items = []clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}}
			}
			return nil
		},
	})
	s, err := Read(t.Context(), api, Scope{}, readAt)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Machines).To(ConsistOf(HaveField("ManagedFields", BeEmpty())))
}

// A user with role view of a namespace can read the objects of the providers, and may read no others.
func TestForbiddenKindsAreNotReadable(t *testing.T) {
	g := NewWithT(t)
	refuse := func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		switch list.(type) {
		case *metal3.HostList:
			return apierrors.NewForbidden(schema.GroupResource{Resource: "baremetalhosts"}, "", errors.New("user jane cannot list"))
		case *aiv1beta1.AgentList:
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: snapshot.KindAgent}}
		case *clusterv1.MachineList:
			return errors.New("etcdserver: request timed out")
		}
		return api.List(ctx, list, options...)
	}
	s, err := Read(t.Context(), newClient(t, interceptor.Funcs{List: refuse}), Scope{Namespace: "lab", Cluster: "ha", Hosts: true}, readAt)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.NotReadable).To(Equal(map[string]string{
		snapshot.KindHost: "no permission", snapshot.KindAgent: "this management cluster does not have the kind",
		snapshot.KindMachine: "etcdserver: request timed out",
	}))
	g.Expect(s.All()[0].NotReadable).To(Equal(s.NotReadable))
}

// A proxy, or an API server without the kind, answers 404 for an object that exists.
func TestUnexpectedAnswerIsNoMissingObject(t *testing.T) {
	g := NewWithT(t)
	api := newClient(t, interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, is := object.(*controlplanev1.OpenshiftAssistedControlPlane); is {
				return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{Resource: "x"}, key.Name, "", 0, true)
			}
			return api.Get(ctx, key, object, options...)
		},
	})
	s, err := Read(t.Context(), api, Scope{Namespace: "lab", Cluster: "ha"}, readAt)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.NotReadable).To(HaveKey(snapshot.KindControlPlane))
	g.Expect(s.All()[0].MayBeReadLater()).To(BeTrue())
	g.Expect(IsAbsent(apierrors.NewNotFound(schema.GroupResource{Resource: "clusters"}, "ha"))).To(BeTrue())
}

func TestUnreadableClusterIsAnError(t *testing.T) {
	g := NewWithT(t)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "clusters"}, "ha", errors.New("no"))
	api := newClient(t, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		},
	})
	_, err := Read(t.Context(), api, Scope{Namespace: "lab", Cluster: "ha"}, readAt)
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue())
	_, err = ClusterOf(t.Context(), api, types.NamespacedName{Namespace: "lab", Name: "m0"})
	g.Expect(err).To(MatchError(ContainSubstring("cannot read Machine lab/m0")))
}

// endless answers every list with a full page, and with the start of another page.
func endless(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	if o.Limit != pageSize {
		return fmt.Errorf("limit of a page: %d", o.Limit)
	}
	list.SetContinue(o.Continue + "x")
	if machines, is := list.(*clusterv1.MachineList); is {
		machines.Items = make([]clusterv1.Machine, pageSize)
		return nil
	}
	return meta.SetList(list, nil)
}

func TestNumberOfObjectsIsBounded(t *testing.T) {
	g := NewWithT(t)
	pages := 0
	api := newClient(t, interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*clusterv1.MachineList); !is {
				return api.List(ctx, list, options...)
			}
			if pages++; pages > 2*maxObjects/pageSize {
				return errors.New("the pages are read without end")
			}
			return endless(ctx, api, list, options...)
		},
	})
	s, err := Read(t.Context(), api, Scope{Namespace: "lab"}, readAt)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.NotReadable).To(HaveKeyWithValue(snapshot.KindMachine, ContainSubstring("more than 20000 objects exist")))
	g.Expect(pages).To(Equal(maxObjects / pageSize))
	g.Expect(s.Machines).To(BeEmpty(), "a part of the Machines would look like all of them")
}

func TestSecretsCannotBeRead(t *testing.T) {
	g := NewWithT(t)
	scheme, err := NewScheme()
	g.Expect(err).NotTo(HaveOccurred())
	for kind := range scheme.AllKnownTypes() {
		g.Expect(kind.Kind).NotTo(ContainSubstring("Secret"))
	}
	err = newClient(t, interceptor.Funcs{}).Get(t.Context(), types.NamespacedName{Namespace: "lab", Name: "ha-kubeconfig"}, &corev1.Secret{})
	g.Expect(runtime.IsNotRegisteredError(err)).To(BeTrue(), "%v", err)
}
