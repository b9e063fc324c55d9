package controlplane

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// lacking is a cache that does not show a Secret yet.
type lacking struct {
	client.Reader

	name string
}

func (l lacking) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if secret, is := obj.(*metav1.PartialObjectMetadata); is && key.Name == l.name && secret.Kind == "Secret" {
		return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	return l.Reader.Get(ctx, key, obj, opts...)
}

// TestKubeconfigThatTheCacheDoesNotShowYet: the first write is forced and would overwrite it.
func TestKubeconfigThatTheCacheDoesNotShowYet(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "cluster1-kubeconfig"}, Data: map[string][]byte{"value": []byte("theirs")}}
	h.Expect(h.Create(t.Context(), theirs)).To(Succeed())
	h.r.Metadata = lacking{h.r.Metadata, theirs.Name}
	h.giveKubeconfig("assisted-service")
	h.reconcile()
	h.Expect(h.published().Data).To(HaveKeyWithValue("value", BeEquivalentTo("theirs")))
	h.Expect(h.published().OwnerReferences).To(BeEmpty())
}

func TestPlaceholderPullSecretThatTheCacheDoesNotShowYet(t *testing.T) {
	h := newHub(t, world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Version, cp.Spec.Config.PullSecretRef = "4.19.0-okd-scos.5", nil
	})...)
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "c1-placeholder-pull-secret"}, Data: map[string][]byte{"key": []byte("theirs")}}
	h.Expect(h.Create(t.Context(), theirs)).To(Succeed())
	h.r.Metadata = lacking{h.r.Metadata, theirs.Name}
	h.reconcile()
	kept := &corev1.Secret{}
	h.get(theirs.Name, kept)
	h.Expect(kept.Data).To(Equal(theirs.Data), "one that exists is used as it is")
	h.Expect(kept.OwnerReferences).To(BeEmpty())
}
