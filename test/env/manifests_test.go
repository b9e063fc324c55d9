package env

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSubstitute(t *testing.T) {
	values := map[string]string{"GIVEN": "value"}
	for _, c := range []struct{ situation, manifests, wanted string }{
		{"a given variable has its value, which overrides its default", "a ${GIVEN}, ${GIVEN:=default}", "a value, value"},
		{"a missing variable has its default", "--address=${MISSING:=:8443}", "--address=:8443"},
		{"a missing variable has its default, in the other spelling", "${MISSING:-x} ${MISSING=y}", "x y"},
		{"a missing variable without default is empty", "[${MISSING}]", "[]"},
		{"a dollar sign alone is no variable", "^a$ $MISSING ${", "^a$ $MISSING ${"},
	} {
		t.Run(c.situation, func(t *testing.T) {
			NewWithT(t).Expect(string(substitute([]byte(c.manifests), values))).To(Equal(c.wanted))
		})
	}
}

const webhookManifests = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validation}
webhooks:
- name: one.example.com
  clientConfig: {service: {name: webhook-service, namespace: system, path: /validate}}
---
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: converted}
spec:
  conversion:
    strategy: Webhook
    webhook: {clientConfig: {service: {name: webhook-service, namespace: system, path: /convert}}, conversionReviewVersions: [v1]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: plain}
spec: {group: example.com}
`

func TestRedirectCallsWebhooksDirectly(t *testing.T) {
	g := NewWithT(t)
	objects, err := decode([]byte(webhookManifests))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects).To(HaveLen(3))
	g.Expect(hasWebhook(objects[0])).To(BeTrue())
	g.Expect(hasWebhook(objects[1])).To(BeTrue())
	g.Expect(hasWebhook(objects[2])).To(BeFalse())

	server := &webhookServer{url: "https://127.0.0.1:9443", caBundle: []byte("CA")}
	for _, object := range objects {
		g.Expect(server.redirect(object)).To(Succeed())
	}
	webhooks, _, err := unstructured.NestedSlice(objects[0].Object, "webhooks")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(webhooks).To(ConsistOf(HaveKeyWithValue("clientConfig",
		Equal(map[string]any{"url": "https://127.0.0.1:9443/validate", "caBundle": "Q0E="}))))
	config, _, err := unstructured.NestedMap(objects[1].Object, "spec", "conversion", "webhook", "clientConfig")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config).To(Equal(map[string]any{"url": "https://127.0.0.1:9443/convert", "caBundle": "Q0E="}))

	withoutConversion(objects)
	g.Expect(hasWebhook(objects[1])).To(BeFalse())
}

const moreVersions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: examples.example.com}
spec:
  versions: [{name: v1alpha1, served: false, storage: false}, {name: v1beta2, served: true, storage: true},
    {name: v1beta1, served: true, storage: false}]
`

func TestOnlyStoredVersionOfCRDIsInstalled(t *testing.T) {
	g := NewWithT(t)
	objects, err := decode([]byte(moreVersions))
	g.Expect(err).NotTo(HaveOccurred())
	m := &manager{}
	g.Expect(m.sort(objects[0])).To(Succeed())
	versions, _, err := unstructured.NestedSlice(m.objects[0].Object, "spec", "versions")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(versions).To(ConsistOf(HaveKeyWithValue("name", "v1beta2")))

	objects, err = decode([]byte(moreVersions))
	g.Expect(err).NotTo(HaveOccurred())
	m = &manager{options: ManagerOptions{AllVersions: true}}
	g.Expect(m.sort(objects[0])).To(Succeed())
	versions, _, err = unstructured.NestedSlice(m.objects[0].Object, "spec", "versions")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(versions).To(HaveLen(3), "with AllVersions")
}

func TestEnvironmentOfTheContainer(t *testing.T) {
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	m := &manager{
		deployment: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "manager"}},
		configMaps: map[string]*corev1.ConfigMap{"settings": {Data: map[string]string{"FAST": "false"}}},
	}
	settings := func(name string) []corev1.EnvFromSource {
		return []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}
	}
	t.Run("literals, fields of the Pod, its memory limit and ConfigMaps of the manifests are supported", func(t *testing.T) {
		g := NewWithT(t)
		variables, err := m.environment(corev1.Container{EnvFrom: settings("settings"), Env: []corev1.EnvVar{
			{Name: "A", Value: "a"},
			{Name: "POD_NAMESPACE", ValueFrom: field("metadata.namespace")},
			{Name: "POD_NAME", ValueFrom: field("metadata.name")},
			{Name: "MEMORY_LIMIT", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}}},
		}, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(variables).To(Equal([]string{"FAST=false", "A=a", "POD_NAMESPACE=system", "POD_NAME=manager", "MEMORY_LIMIT=1048576"}))
	})
	t.Run("other sources are rejected", func(t *testing.T) {
		g := NewWithT(t)
		_, err := m.environment(corev1.Container{EnvFrom: settings("other")})
		g.Expect(err).To(HaveOccurred())
		_, err = m.environment(corev1.Container{Env: []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{}}}})
		g.Expect(err).To(MatchError(ContainSubstring("variable A")))
	})
}
