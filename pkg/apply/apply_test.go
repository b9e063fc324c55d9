package apply

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// counting returns a client that counts the apply requests.
func counting(t *testing.T) (client.Client, *int) {
	t.Helper()
	requests := 0
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			requests++
			return c.Apply(ctx, obj, opts...)
		},
	}).Build()
	return c, &requests
}

func configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "settings"}, Data: data}
}

func TestApplySendsARequestOnlyForChanges(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	c, requests := counting(t)
	a := New(c, "test")

	changed, err := a.Apply(ctx, configMap(map[string]string{"a": "1"}), nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(changed).To(BeTrue())
	stored := configMap(nil)
	g.Expect(c.Get(ctx, client.ObjectKeyFromObject(stored), stored)).To(Succeed())
	g.Expect(stored.Data).To(HaveKeyWithValue("a", "1"))

	changed, err = a.Apply(ctx, configMap(map[string]string{"a": "1"}), stored)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(changed).To(BeFalse(), "the same again")

	drifted := stored.DeepCopy()
	drifted.Data["a"], drifted.ResourceVersion = "foreign", "drifted"
	changed, err = a.Apply(ctx, configMap(map[string]string{"a": "1"}), drifted)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(changed).To(BeTrue(), "another client changed an applied field")

	changed, err = a.Apply(ctx, configMap(nil), stored)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(changed).To(BeTrue(), "a field is no longer wanted")
	g.Expect(*requests).To(Equal(3))
}

func TestTryCreateCreatesNothing(t *testing.T) {
	g := NewWithT(t)
	var name string
	var refusal error
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			g.Expect((&client.ApplyOptions{}).ApplyOptions(opts).DryRun).To(ConsistOf(metav1.DryRunAll))
			content, err := json.Marshal(o)
			g.Expect(err).NotTo(HaveOccurred())
			var metadata metav1.PartialObjectMetadata
			g.Expect(json.Unmarshal(content, &metadata)).To(Succeed())
			name = metadata.Name
			return refusal
		},
	})
	a, wanted := New(c, "test"), configMap(map[string]string{"a": "1"})
	g.Expect(a.TryCreate(t.Context(), wanted)).To(Succeed())
	g.Expect(name).To(And(HavePrefix("settings-"), Not(Equal("settings-"))), "webhooks must see a new object")
	g.Expect(wanted).To(Equal(configMap(map[string]string{"a": "1"})))

	refusal = apierrors.NewBadRequest("no")
	g.Expect(a.TryCreate(t.Context(), wanted)).To(MatchError(refusal))

	configMaps := schema.GroupResource{Resource: "configmaps"}
	refusal = apierrors.NewForbidden(configMaps, name, errors.New("exceeded quota: objects, "+
		"requested: count/configmaps=1, used: count/configmaps=9, limited: count/configmaps=9"))
	g.Expect(a.TryCreate(t.Context(), wanted)).To(Succeed(), "the deletion of the object releases its share")
	refusal = apierrors.NewForbidden(configMaps, name, errors.New("no RBAC policy matched"))
	g.Expect(a.TryCreate(t.Context(), wanted)).To(MatchError(refusal))
}

// Hive's admission webhook refuses names of ClusterDeployments that are longer than 63 characters.
func TestTrialName(t *testing.T) {
	long := strings.Repeat("a", 63)
	for situation, tc := range map[string]struct{ name, prefix string }{
		"short: the suffix is appended":                    {"site1", "site1-"},
		"57 characters: the suffix fits":                   {long[:57], long[:57] + "-"},
		"58 characters: the end is replaced":               {long[:58], long[:57] + "-"},
		"63 characters: the end is replaced":               {long, long[:57] + "-"},
		"63 characters: a separator is not doubled":        {long[:55] + "-." + long[:6], long[:55] + "-"},
		"subdomain of 70 characters: does not grow longer": {long + ".aaaaaa", long + "-"},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			name := trialName(tc.name)
			g.Expect(name).To(HavePrefix(tc.prefix))
			g.Expect(len(name)).To(And(Equal(len(tc.prefix)+5), BeNumerically("<=", max(len(tc.name), 63))))
			g.Expect(name).NotTo(Equal(tc.name))
			g.Expect(validation.IsDNS1123Subdomain(name)).To(BeEmpty())
		})
	}
}

func TestApplyKeepsAReplacedOwnerReference(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	c, requests := counting(t)
	a := New(c, "test")
	owned := configMap(map[string]string{"a": "1"})
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "first", UID: "1"}}
	_, err := a.Apply(ctx, owned.DeepCopy(), nil)
	g.Expect(err).NotTo(HaveOccurred())

	observed := owned.DeepCopy()
	observed.OwnerReferences[0] = metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "second", UID: "2"}
	_, err = a.Apply(ctx, configMap(map[string]string{"a": "1"}), observed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*requests).To(Equal(1), "the applied reference was replaced")

	_, err = a.Apply(ctx, owned.DeepCopy(), observed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*requests).To(Equal(2), "a desired reference is restored")
}

func TestApplyComparesAnObjectOnceForEachVersion(t *testing.T) {
	g := NewWithT(t)
	c, requests := counting(t)
	a := New(c, "test")
	wanted := func() client.Object { return configMap(map[string]string{"a": "1"}) }
	_, err := a.Apply(t.Context(), wanted(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	observed := configMap(map[string]string{"a": "1"})
	observed.ResourceVersion = "5"
	for range 2 {
		_, err = a.Apply(t.Context(), wanted(), observed)
		g.Expect(err).NotTo(HaveOccurred())
		observed.Data = nil // not compared: the version is the same
	}
	g.Expect(*requests).To(Equal(1))

	observed.ResourceVersion = "6"
	_, err = a.Apply(t.Context(), wanted(), observed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*requests).To(Equal(2), "another version is compared")
}

func TestApplyComparesWhenAnotherOwnerIsWanted(t *testing.T) {
	g := NewWithT(t)
	c, requests := counting(t)
	a := New(c, "test")
	ownedBy := func(uid types.UID) *corev1.ConfigMap {
		owned := configMap(map[string]string{"a": "1"})
		owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "owner", UID: uid}}
		return owned
	}
	observed := ownedBy("1")
	observed.ResourceVersion = "5"
	for _, owner := range []types.UID{"1", "1", "2"} { // the last owner was recreated
		_, err := a.Apply(t.Context(), ownedBy(owner), observed)
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(*requests).To(Equal(2), "for the first and the last owner")
}

func TestApplyDoesNotRecreateADeletedObject(t *testing.T) {
	g := NewWithT(t)
	var sent client.Object
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			sent, _ = obj.(client.Object)
			return nil
		},
	}).Build()
	observed := configMap(map[string]string{"a": "0"})
	observed.UID = "uid-1"
	_, err := New(c, "test").Apply(t.Context(), configMap(map[string]string{"a": "1"}), observed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sent).NotTo(BeNil())
	g.Expect(string(sent.GetUID())).To(Equal("uid-1"), "the UID is the precondition")
}

func TestContains(t *testing.T) {
	for name, tc := range map[string]struct {
		have, want map[string]any
		result     bool
	}{
		"foreign fields are ignored": {
			have: map[string]any{"a": "1", "b": "2"}, want: map[string]any{"a": "1"}, result: true,
		},
		"a field differs": {
			have: map[string]any{"a": "1"}, want: map[string]any{"a": "2"},
		},
		"a field is missing": {
			have: map[string]any{}, want: map[string]any{"a": "2"},
		},
		"numbers of different Go types are equal": {
			have: map[string]any{"a": int64(3)}, want: map[string]any{"a": int32(3)}, result: true,
		},
		"a list that is longer than wanted": {
			have: map[string]any{"a": []any{"x", "y"}}, want: map[string]any{"a": []any{"x"}},
		},
		"foreign finalizers are ignored": {
			have: map[string]any{"finalizers": []any{"x", "y"}}, want: map[string]any{"finalizers": []any{"y"}}, result: true,
		},
		"our owner reference is missing": {
			have: map[string]any{"ownerReferences": []any{map[string]any{"uid": "1"}}},
			want: map[string]any{"ownerReferences": []any{map[string]any{"uid": "2"}}},
		},
		"an empty object equals a missing one": {
			have: map[string]any{}, want: map[string]any{"a": map[string]any{}}, result: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(contains(tc.have, tc.want)).To(Equal(tc.result))
		})
	}
}

func TestHasMore(t *testing.T) {
	for name, tc := range map[string]struct {
		have, want any
		result     bool
	}{
		"another entry": {have: map[string]any{"a": "1", "b": "2"}, want: map[string]any{"a": "1"}, result: true},
		"empty values of a Go type": {
			have: map[string]any{"a": "1", "b": false, "c": int64(0), "d": map[string]any{}, "e": nil}, want: map[string]any{"a": "1"},
		},
		"another entry in a list": {have: []any{map[string]any{"a": "1", "b": "2"}}, want: []any{map[string]any{"a": "1"}}, result: true},
		"another item":            {have: []any{"x", "y"}, want: []any{"x"}, result: true},
		"the same":                {have: []any{"x"}, want: []any{"x"}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(hasMore(tc.have, tc.want)).To(Equal(tc.result))
		})
	}
}

func TestApplyDoesNotChangeItsArguments(t *testing.T) {
	g := NewWithT(t)
	c, requests := counting(t)
	given := func() *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": ""}, "status": map[string]any{}}}
		u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		u.SetName("settings")
		u.SetResourceVersion("5")
		u.SetOwnerReferences([]metav1.OwnerReference{{Name: "owner"}})
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: "test", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1",
			FieldsV1: metav1.NewFieldsV1(`{}`),
		}})
		return u
	}
	desired, observed := given(), given()
	_, err := New(c, "test").Apply(t.Context(), desired, observed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*requests).To(BeZero())
	g.Expect(desired).To(Equal(given()))
	g.Expect(observed).To(Equal(given()))
}

func TestFieldsExcludeStatusAndEmptyValues(t *testing.T) {
	g := NewWithT(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "lab", Labels: map[string]string{"flag": ""}, ResourceVersion: "7"},
		Spec:       corev1.PodSpec{NodeName: "", Hostname: "h"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	u, err := fields(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(u.Object).NotTo(HaveKey("status"))
	g.Expect(u.GetLabels()).To(HaveKeyWithValue("flag", ""), "an empty label is a value")
	g.Expect(u.GetResourceVersion()).To(BeEmpty())
	g.Expect(u.Object["spec"]).To(HaveKeyWithValue("hostname", "h"))
}

// Labels of roles have no value. They also occur in specs, not only in metadata.
func TestLabelsWithoutValue(t *testing.T) {
	g := NewWithT(t)
	agent := &aiv1beta1.Agent{Spec: aiv1beta1.AgentSpec{NodeLabels: map[string]string{"node-role.kubernetes.io/infra": ""}}}
	u, err := fields(agent, aiv1beta1.GroupVersion.WithKind("Agent"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(u.Object["spec"]).To(HaveKeyWithValue("nodeLabels", HaveKeyWithValue("node-role.kubernetes.io/infra", "")))
	g.Expect(u.Object["spec"]).NotTo(HaveKey("hostname"))
	u, err = fields(
		&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"nodeLabels": nil}}},
		aiv1beta1.GroupVersion.WithKind("Agent"),
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(u.Object["spec"]).NotTo(HaveKey("nodeLabels"), "a null is no value")
}
