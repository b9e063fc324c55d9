package config_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// checkNewerInfraEnvs applies fields that the schema lacks, like the schema of an older assisted-service, and
// then adds the fields to the schema.
func checkNewerInfraEnvs(ctx context.Context, t *testing.T, e *env.Env) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(aiv1beta1.AddToScheme(scheme)).To(Succeed())
	c, err := client.New(e.Config(), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	wanted := func(change func(spec *aiv1beta1.InfraEnvSpec)) *aiv1beta1.InfraEnv {
		infraEnv := &aiv1beta1.InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "newer"}}
		infraEnv.Spec.PullSecretRef = &corev1.LocalObjectReference{Name: "pull-secret"}
		change(&infraEnv.Spec)
		return infraEnv
	}
	plain := func(*aiv1beta1.InfraEnvSpec) {}
	newer := func(spec *aiv1beta1.InfraEnvSpec) {
		spec.NTPSources, spec.NetworkDiscoveryDelaySeconds = []string{"ntp"}, ptr.To[int64](30)
	}
	applier := apply.New(c, "config-test")
	stored := func() *aiv1beta1.InfraEnv {
		infraEnv, err := kube.Read(ctx, c, client.ObjectKey{Namespace: elsewhere, Name: "newer"}, &aiv1beta1.InfraEnv{})
		g.Expect(err).NotTo(HaveOccurred())
		return infraEnv
	}

	_, err = applier.Apply(ctx, wanted(newer), nil)
	g.Expect(kube.UndeclaredField(err)).To(BeElementOf("spec.ntpSources", "spec.networkDiscoveryDelaySeconds"), "%v", err)
	g.Expect(kube.IsRefused(err)).To(BeTrue())
	_, err = applier.Apply(ctx, wanted(plain), nil)
	g.Expect(err).NotTo(HaveOccurred(), "unset fields are not sent to an older assisted-service")

	extendInfraEnvs(ctx, g, e.Client())
	g.Eventually(func() error {
		_, err := applier.Apply(ctx, wanted(newer), stored())
		return err
	}, time.Minute).Should(Succeed())
	g.Expect(stored().Spec).To(And(HaveField("NTPSources", ConsistOf("ntp")),
		HaveField("NetworkDiscoveryDelaySeconds", HaveValue(BeEquivalentTo(30)))))
	fresh := apply.New(c, "config-test") // a writer with an empty cache
	changed, err := fresh.Apply(ctx, wanted(newer), stored())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(changed).To(BeFalse(), "an unchanged object is not written again")
	_, err = fresh.Apply(ctx, wanted(plain), stored())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stored().Spec).To(And(HaveField("NTPSources", BeEmpty()), HaveField("NetworkDiscoveryDelaySeconds", BeNil())), "withdrawn")
}

// extendInfraEnvs adds the fields of a newer assisted-service to the CRD of InfraEnvs.
func extendInfraEnvs(ctx context.Context, g Gomega, c client.Client) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(c.Get(ctx, client.ObjectKey{Name: "infraenvs." + aiv1beta1.GroupVersion.Group}, crd)).To(Succeed())
	before := crd.DeepCopy()
	for i := range crd.Spec.Versions {
		spec := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"]
		spec.Properties["ntpSources"] = apiextensionsv1.JSONSchemaProps{
			Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}},
		}
		spec.Properties["networkDiscoveryDelaySeconds"] = apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64", Minimum: ptr.To(0.0)}
	}
	g.Expect(c.Patch(ctx, crd, client.MergeFrom(before))).To(Succeed())
}
