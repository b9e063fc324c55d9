package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: "u-1"}}
}

func TestRead(t *testing.T) {
	g := NewWithT(t)
	failure := errors.New("no answer")
	c := fake.NewClientBuilder().WithObjects(secret("existing")).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if key.Name == "unreadable" {
				return failure
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
	read := func(name string) (*corev1.Secret, error) {
		return Read(t.Context(), c, client.ObjectKey{Namespace: "n", Name: name}, &corev1.Secret{})
	}
	found, err := read("existing")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Name).To(Equal("existing"))
	g.Expect(VersionOf(found)).To(And(Not(BeEmpty()), Equal(found.ResourceVersion)))
	found, err = read("missing")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(BeNil())
	g.Expect(IsNil(found)).To(BeTrue(), "the interface is not nil, but its pointer is")
	g.Expect(VersionOf(found)).To(BeEmpty())
	_, err = read("unreadable")
	g.Expect(err).To(MatchError(failure))
	g.Expect(err).To(MatchError(ContainSubstring("cannot read Secret n/unreadable")))
}

func TestExists(t *testing.T) {
	g := NewWithT(t)
	first, second := secret("s"), secret("s")
	first.UID, second.UID = "1", "2"
	c := fake.NewClientBuilder().WithObjects(second).Build()
	exists := func(s *corev1.Secret) bool {
		there, err := Exists(t.Context(), c, s, &corev1.Secret{})
		g.Expect(err).NotTo(HaveOccurred())
		return there
	}
	g.Expect(exists(second)).To(BeTrue())
	g.Expect(exists(first)).To(BeFalse(), "a new object of the same name")
	g.Expect(c.Delete(t.Context(), second)).To(Succeed())
	g.Expect(exists(second)).To(BeFalse())
}

func TestDelete(t *testing.T) {
	g := NewWithT(t)
	var options []client.DeleteOption
	c := fake.NewClientBuilder().WithObjects(secret("existing")).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			options = append(options, opts...)
			return c.Delete(ctx, obj, opts...)
		},
	}).Build()
	deleting := secret("deleting")
	now := metav1.Now()
	deleting.DeletionTimestamp = &now
	g.Expect(Delete(t.Context(), c, deleting)).To(Succeed())
	g.Expect(options).To(BeEmpty(), "its deletion was requested before")

	g.Expect(Delete(t.Context(), c, secret("missing"))).To(Succeed())
	g.Expect(Delete(t.Context(), c, secret("existing"))).To(Succeed())
	g.Expect(options).To(HaveEach(WithTransform(func(o client.DeleteOption) string {
		options := &client.DeleteOptions{}
		o.ApplyToDelete(options)
		return string(*options.Preconditions.UID)
	}, Equal("u-1"))), "not a new object of the same name")
	g.Expect(apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "existing"}, &corev1.Secret{}))).To(BeTrue())
}

func TestPatchMetadata(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewClientBuilder().WithObjects(secret("existing")).Build()
	before := &corev1.Secret{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "existing"}, before)).To(Succeed())
	after := before.DeepCopy()
	after.Finalizers = []string{"example.com/ours"}
	g.Expect(PatchMetadata(t.Context(), c, before, after, "test")).To(Succeed())
	g.Expect(after.ResourceVersion).NotTo(Equal(before.ResourceVersion), "after is the response")

	g.Expect(PatchMetadata(t.Context(), nil, after, after.DeepCopy(), "test")).To(Succeed(), "no request if nothing differs")

	late := before.DeepCopy()
	late.Finalizers = []string{"example.com/theirs"}
	g.Expect(PatchMetadata(t.Context(), c, before, late, "test")).
		To(MatchError(apierrors.IsConflict, "a conflict"), "the finalizer of the first write would be lost")
}

// TestPatchOfTrimmedMetadataKeepsTheRest removes the last cached annotation and label. The others, which the
// cache does not keep, must stay.
func TestPatchOfTrimmedMetadataKeepsTheRest(t *testing.T) {
	g := NewWithT(t)
	stored := secret("existing")
	stored.Annotations = map[string]string{"example.com/ours": "1", "example.com/theirs": "2"}
	stored.Labels = map[string]string{"ours": "1", "theirs": "2"}
	c := fake.NewClientBuilder().WithObjects(stored).Build()
	before := &corev1.Secret{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(stored), before)).To(Succeed())
	before.Annotations, before.Labels = SelectKeys(before.Annotations, "example.com/ours"), SelectKeys(before.Labels, "ours")
	after := before.DeepCopy()
	delete(after.Annotations, "example.com/ours")
	delete(after.Labels, "ours")
	g.Expect(PatchMetadata(t.Context(), c, before, after, "test")).To(Succeed())
	found := &corev1.Secret{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(stored), found)).To(Succeed())
	g.Expect(found.Annotations).To(Equal(map[string]string{"example.com/theirs": "2"}))
	g.Expect(found.Labels).To(Equal(map[string]string{"theirs": "2"}))
}

func TestIsRefused(t *testing.T) {
	kind, resource := schema.GroupKind{Kind: "Secret"}, corev1.Resource("secrets")
	for situation, tc := range map[string]struct {
		err     error
		refused bool
	}{
		"no error":      {nil, false},
		"the schema":    {apierrors.NewInvalid(kind, "s", field.ErrorList{field.Required(field.NewPath("spec"), "")}), true},
		"a bad request": {apierrors.NewBadRequest("what?"), true},
		"a webhook": {
			fmt.Errorf("cannot write: %w", apierrors.NewForbidden(resource, "s", errors.New(`admission webhook "w" denied the request: no`))), true,
		},
		"a missing right": {apierrors.NewForbidden(resource, "s", errors.New("no RBAC policy matched")), false},
		"a conflict":      {apierrors.NewConflict(resource, "s", errors.New("changed")), false},
		"a field of another version": {
			apierrors.NewInternalError(
				errors.New("failed to create typed patch object: .spec.provisionRequirements.arbiterAgents: field not declared in schema"),
			),
			true,
		},
		"a webhook is unavailable": {apierrors.NewInternalError(errors.New("failed calling webhook")), false},
		"an unknown field": {
			errors.New("failed to create typed patch object (lab/m; v1, Kind=Foo): .spec.a: field not declared in schema"), true,
		},
	} {
		t.Run(situation, func(t *testing.T) { NewWithT(t).Expect(IsRefused(tc.err)).To(Equal(tc.refused)) })
	}
}

func TestOwnersRefused(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	refused := apierrors.NewForbidden(secrets, "m", errors.New("cannot set an ownerRef on a resource you can't delete: , <nil>"))
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"none":            {nil, false},
		"the plugin's":    {fmt.Errorf("cannot apply Secret m: %w", refused), true},
		"another right":   {apierrors.NewForbidden(secrets, "m", errors.New("no")), false},
		"no admission":    {errors.New("cannot set an ownerRef on a resource you can't delete"), false},
		"of another kind": {apierrors.NewConflict(secrets, "m", errors.New("cannot set an ownerRef on a resource you can't delete")), false},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(OwnersRefused(tc.err)).To(Equal(tc.want)) })
	}
}

func TestIsTransient(t *testing.T) {
	resource := corev1.Resource("secrets")
	for situation, tc := range map[string]struct {
		err     error
		passing bool
	}{
		"no error":                           {nil, false},
		"a conflict":                         {fmt.Errorf("cannot write: %w", apierrors.NewConflict(resource, "s", errors.New("changed"))), true},
		"the API server is overloaded":       {apierrors.NewTooManyRequests("later", 1), true},
		"the API server restarts":            {apierrors.NewServiceUnavailable("starting"), true},
		"the API server refuses connections": {fmt.Errorf("cannot write: %w", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), true},
		"no answer in time":                  {fmt.Errorf("cannot write: %w", context.DeadlineExceeded), true},
		"etcd did not answer in time":        {apierrors.NewTimeoutError("etcd", 1), true},
		"the server times out":               {apierrors.NewServerTimeout(resource, "create", 1), true},
		"a webhook is unavailable":           {apierrors.NewInternalError(errors.New(`failed calling webhook "w": connection refused`)), true},
		"a quota is used up": {
			apierrors.NewForbidden(resource, "s", errors.New("exceeded quota: q, requested: count/metal3machines=1")), true,
		},
		"a webhook denies": {
			apierrors.NewForbidden(resource, "s", errors.New(`admission webhook "w" denied the request: no`)), false,
		},
		"a missing right":                   {apierrors.NewForbidden(resource, "s", errors.New("no RBAC policy matched")), false},
		"another error of an API server":    {apierrors.NewInternalError(errors.New("conversion failed")), false},
		"the schema":                        {apierrors.NewBadRequest("what?"), false},
		"a foreign object of the same name": {errors.New("exists and was not created for this control plane"), false},
	} {
		t.Run(situation, func(t *testing.T) { NewWithT(t).Expect(IsTransient(tc.err)).To(Equal(tc.passing)) })
	}
}

func TestUndeclaredField(t *testing.T) {
	const answer = "cannot apply InfraEnv lab/m: failed to create typed patch object (lab/m; agent-install.openshift.io/v1beta1, " +
		"Kind=InfraEnv): "
	for cause, wanted := range map[string]string{
		".spec.ntpSources: field not declared in schema":                                              "spec.ntpSources",
		"errors:\n  .spec.a: field not declared in schema\n  .spec.b.c: field not declared in schema": "spec.a",
		".spec.a: expected string, got 1":                                                             "",
	} {
		NewWithT(t).Expect(UndeclaredField(errors.New(answer+cause))).To(Equal(wanted), cause)
	}
	NewWithT(t).Expect(UndeclaredField(nil)).To(BeEmpty())
}

func TestExternal(t *testing.T) {
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "FooMachine", Name: "m"}
	for situation, tc := range map[string]struct {
		labels  map[string]string
		version string
		fails   bool
	}{
		"the newest contract": {
			labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1", "cluster.x-k8s.io/v1beta2": "v2"}, version: "v2",
		},
		"the newest of its versions": {labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1alpha3_v1_v1beta10"}, version: "v1"},
		"an older contract":          {labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta1"}, version: "v1beta1"},
		"no contract":                {labels: map[string]string{"cluster.x-k8s.io/provider": "foo"}, fails: true},
		"a kind that does not exist": {},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
			builder := fake.NewClientBuilder().WithScheme(scheme)
			if tc.labels != nil {
				builder = builder.WithObjects(&apiextensionsv1.CustomResourceDefinition{
					ObjectMeta: metav1.ObjectMeta{Name: "foomachines.infrastructure.cluster.x-k8s.io", Labels: tc.labels},
				})
			}
			object, err := External(t.Context(), builder.Build(), ref, "n")
			g.Expect(err != nil).To(Equal(tc.fails))
			if tc.version == "" {
				g.Expect(object).To(BeNil())
				return
			}
			g.Expect(object.GroupVersionKind()).To(Equal(schema.GroupVersionKind{Group: ref.APIGroup, Version: tc.version, Kind: ref.Kind}))
			g.Expect(client.ObjectKeyFromObject(object)).To(Equal(client.ObjectKey{Namespace: "n", Name: "m"}))
		})
	}
}

// The cache waits without end for an object of a kind without rights, even if the object exists.
func TestKindOfAnotherGroupIsNotRead(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "foomachines.controlplane.cluster.x-k8s.io",
			Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"},
		},
	}).Build()
	object, err := External(
		t.Context(),
		c,
		clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.cluster.x-k8s.io", Kind: "FooMachine", Name: "m"},
		"n",
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(object).To(BeNil())
}

func TestIndexOf(t *testing.T) {
	g := NewWithT(t)
	index := IndexOf(&corev1.Secret{}, "type", func(s *corev1.Secret) []string { return NonEmpty(string(s.Type), "", "all") })
	g.Expect(index.Values(&corev1.Secret{Type: "t"})).To(Equal([]string{"t", "all"}))
	g.Expect(index.Values(&corev1.ConfigMap{})).To(BeEmpty(), "another kind")
	c := fake.NewClientBuilder().WithObjects(secret("existing")).WithIndex(index.Object, index.Field, index.Values).Build()
	list := &corev1.SecretList{}
	g.Expect(c.List(t.Context(), list, client.MatchingFields{"type": "all"})).To(Succeed())
	g.Expect(list.Items).To(HaveLen(1))
}
