package config_test

import (
	"bytes"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

// Cluster API reaches the extension by names that only this test compares. The end-to-end tests use only the
// ExtensionConfig.
func TestClusterAPIReachesExtension(t *testing.T) {
	g := NewWithT(t)
	var manager appsv1.Deployment
	for _, object := range components(t, "controlplane/default") {
		if object["kind"] == "Deployment" {
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object, &manager)).To(Succeed())
		}
	}
	content, err := os.ReadFile("../../config/controlplane/in-place-updates.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := readManifests(bytes.NewReader(bytes.ReplaceAll(content, []byte("${WATCHED_NAMESPACE}"), []byte(watched))))
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]map[string]any{}
	for _, object := range objects {
		found[object["kind"].(string)] = object
	}
	var extension runtimev1.ExtensionConfig
	var service corev1.Service
	for kind, into := range map[string]any{"ExtensionConfig": &extension, "Service": &service} {
		g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(found[kind], into, true)).To(Succeed(), kind)
	}
	var certificate struct {
		metav1.ObjectMeta `json:"metadata"`

		Spec struct {
			SecretName string   `json:"secretName"`
			DNSNames   []string `json:"dnsNames"`
		} `json:"spec"`
	}
	g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(found["Certificate"], &certificate)).To(Succeed())

	reference := extension.Spec.ClientConfig.Service
	g.Expect(reference.Namespace + "/" + reference.Name).To(Equal(service.Namespace + "/" + service.Name))
	g.Expect(service.Spec.Ports).To(ConsistOf(HaveField("Port", HaveValue(Equal(*reference.Port)))))
	g.Expect(certificate.Spec.DNSNames).To(ContainElement(service.Name + "." + service.Namespace + ".svc"))
	g.Expect(service.Namespace).To(Equal(manager.Namespace))
	g.Expect(labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(manager.Spec.Template.Labels))).To(BeTrue())
	pod := manager.Spec.Template.Spec
	g.Expect(pod.Containers[0].Ports).To(ContainElement(HaveField("Name", service.Spec.Ports[0].TargetPort.StrVal)))
	g.Expect(pod.Volumes).To(ConsistOf(HaveField("Secret", HaveField("SecretName", certificate.Spec.SecretName))))
	g.Expect(pod.Volumes[0].Secret.Optional).To(HaveValue(BeTrue()), "most hubs have none")
	g.Expect(objects[len(objects)-1]).To(HaveKeyWithValue("kind", "ExtensionConfig"),
		"Cluster API does not start until each extension answers: without cert-manager no ExtensionConfig may be created")
	g.Expect(extension.Spec.NamespaceSelector.MatchExpressions).To(ConsistOf(HaveField("Values", ConsistOf(watched))))
	g.Expect(extension.Annotations).To(HaveKeyWithValue(runtimev1.InjectCAFromSecretAnnotation,
		certificate.Namespace+"/"+certificate.Spec.SecretName))
}
