package assistedsim

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// TestAssistedService checks the same of the real service.
func TestRemovedFieldsOfInfraEnvAreKept(t *testing.T) {
	g := NewWithT(t)
	before := aiv1beta1.InfraEnvSpec{
		SSHAuthorizedKey: "former", IgnitionConfigOverride: "{}", AdditionalNTPSources: []string{"former"}, AdditionalTrustBundle: "former",
		KernelArguments: []aiv1beta1.KernelArgument{{Value: "former"}},
		Proxy:           &aiv1beta1.Proxy{HTTPProxy: "former", HTTPSProxy: "former", NoProxy: "former"},
	}
	spec := aiv1beta1.InfraEnvSpec{}
	keepRemoved(&spec, &before)
	g.Expect(spec).To(Equal(aiv1beta1.InfraEnvSpec{
		SSHAuthorizedKey: "former", IgnitionConfigOverride: "{}", AdditionalNTPSources: []string{"former"}, Proxy: before.Proxy,
	}), "kernel arguments and certificates can be cleared")

	later := aiv1beta1.InfraEnvSpec{SSHAuthorizedKey: "later", Proxy: &aiv1beta1.Proxy{HTTPProxy: "later"}}
	keepRemoved(&later, &before)
	g.Expect(later.SSHAuthorizedKey).To(Equal("later"))
	g.Expect(*later.Proxy).To(Equal(aiv1beta1.Proxy{HTTPProxy: "later", HTTPSProxy: "former", NoProxy: "former"}))
}

func TestImageHasKeptFields(t *testing.T) {
	g, s := NewWithT(t), newSimulator(t, Options{})
	pullSecret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "pull"},
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"quay.io":{"auth":"dXNlcjpwYXNzd29yZA=="}}}`)},
	}
	hub := fake.NewClientBuilder().WithObjects(pullSecret).Build()
	s.client, s.live = hub, hub
	env := &InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "m", UID: "first"}}
	env.Spec.PullSecretRef, env.Spec.SSHAuthorizedKey = &corev1.LocalObjectReference{Name: "pull"}, "former"
	keyIn := func(uid types.UID, key string) string {
		env.UID, env.Spec.SSHAuthorizedKey = uid, key
		record, err := s.registerInfraEnv(t.Context(), env)
		g.Expect(err).NotTo(HaveOccurred())
		return record.spec.SSHAuthorizedKey
	}
	g.Expect(keyIn("first", "former")).To(Equal("former"))
	env.Spec.KernelArguments = []aiv1beta1.KernelArgument{{Value: "quiet"}} // changes the image
	g.Expect(keyIn("first", "")).To(Equal("former"))
	g.Expect(keyIn("second", "")).To(BeEmpty(), "the record is created again")
}
