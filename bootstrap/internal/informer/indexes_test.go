package informer

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

func TestConfigMapsOfAConfigAreWatched(t *testing.T) {
	config := &bootstrapv1.OpenshiftAssistedConfig{}
	g := NewWithT(t)
	g.Expect(configMapsOfConfig(config)).To(BeEmpty())
	config.Spec.MirrorRegistryRef = &corev1.LocalObjectReference{Name: "mirrors"}
	config.Spec.AssistedServiceCA = &bootstrapv1.CABundleReference{Kind: "Secret", Name: "secret"}
	g.Expect(configMapsOfConfig(config)).To(ConsistOf("mirrors"))
	config.Spec.AssistedServiceCA = &bootstrapv1.CABundleReference{Kind: "ConfigMap", Name: "ca"}
	g.Expect(configMapsOfConfig(config)).To(ConsistOf("ca", "mirrors"))
}
