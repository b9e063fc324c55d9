package tokens

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// installed is a fake workload cluster. request receives the last TokenRequest.
func installed(fail error, request *authenticationv1.TokenRequest, objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			obj.SetCreationTimestamp(metav1.Now()) // the fake does not set it
			return c.Create(ctx, obj, opts...)
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, name string, obj, sub client.Object,
			opts ...client.SubResourceCreateOption,
		) error {
			tokenRequest, ok := sub.(*authenticationv1.TokenRequest)
			if !ok || fail != nil {
				return fail
			}
			tokenRequest.DeepCopyInto(request)
			return c.SubResource(name).Create(ctx, obj, sub, opts...)
		},
	}).Build()
}

func secretsOf(g *WithT, c client.Client) []string {
	list := &corev1.SecretList{}
	g.Expect(c.List(context.Background(), list, client.InNamespace(metav1.NamespaceSystem))).To(Succeed())
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// Deleting the Secret revokes its token. Deleting the ServiceAccount revokes all.
func TestTokenIsBoundToSecret(t *testing.T) {
	g := NewWithT(t)
	request := &authenticationv1.TokenRequest{}
	c := installed(nil, request)
	first, err := Issue(t.Context(), c, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first.Value).NotTo(BeEmpty())
	g.Expect(request.Spec.BoundObjectRef).To(Equal(&authenticationv1.BoundObjectReference{
		APIVersion: "v1", Kind: "Secret",
		Name: first.BoundTo,
	}), "a fake has no UIDs")
	g.Expect(*request.Spec.ExpirationSeconds).To(BeNumerically("==", 28*24*3600))

	bound := &corev1.Secret{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: first.BoundTo}, bound)).To(Succeed())
	g.Expect(bound.OwnerReferences).To(ConsistOf(And(HaveField("Kind", "ServiceAccount"), HaveField("Name", accountName))))

	second, err := Issue(t.Context(), c, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(secretsOf(g, c)).To(ConsistOf(first.BoundTo, second.BoundTo), "clients with the first token may not have read the second yet")
	binding := &rbacv1.ClusterRoleBinding{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Name: accountName}, binding)).To(Succeed())
	g.Expect(binding.RoleRef.Name).To(Equal("cluster-admin"))
}

func TestSecretsOfExpiredTokensAreDeleted(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	secret := func(name string, age time.Duration, labels map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: name, Labels: labels,
			CreationTimestamp: metav1.NewTime(now.Add(-age)),
		}}
	}
	ours := map[string]string{managedByLabel: accountName}
	c := installed(nil, &authenticationv1.TokenRequest{},
		secret("expired", Validity+2*clockSkew, ours), secret("valid", Validity-clockSkew, ours),
		secret("others", 100*Validity, nil))
	token, err := Issue(t.Context(), c, now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(secretsOf(g, c)).To(ConsistOf("valid", "others", token.BoundTo))
}

func TestSecretIsDeletedWhenTokenFails(t *testing.T) {
	g := NewWithT(t)
	c := installed(errors.New("no tokens today"), nil)
	_, err := Issue(t.Context(), c, time.Now())
	g.Expect(err).To(MatchError(ContainSubstring("no tokens today")))
	g.Expect(secretsOf(g, c)).To(BeEmpty())
}
