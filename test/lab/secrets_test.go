package lab

import (
	"encoding/base64"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

const (
	aToken = "eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.eyJzdWIiOiJ4In0.c2ln"
	aKey   = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----\n"
)

func TestSecretInObjectIsFound(t *testing.T) {
	kubeconfig := "apiVersion: v1\nusers:\n- user:\n    token: " + aToken + "\n"
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	annotated := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
			"metadata": map[string]any{"annotations": map[string]any{"a": value}},
		}}
	}
	for situation, text := range map[string]string{
		"a password":                      "x" + PullSecretPassword,
		"a password of a BMC":             hosts.BMCPassword,
		"a pull secret":                   `{"auths":{"x":{"auth":"` + PullSecretAuth + `"}}}`,
		"a private key":                   aKey,
		"a token":                         aToken,
		"a kubeconfig":                    kubeconfig,
		"a key below a URL":               "https://api.example.com\nclient-key-data: abc",
		"a kubeconfig with a private key": "users:\n- user:\n    client-key-data: abc\n",
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(SecretIn(annotated(text))).NotTo(BeEmpty())
			object := annotated(text)
			object.SetAPIVersion("agent-install.openshift.io/v1beta1")
			g.Expect(SecretIn(object)).NotTo(BeEmpty(), "in a kind of assisted-service")
			object.SetAPIVersion("v1")
			object.SetKind("Secret")
			g.Expect(SecretIn(object)).To(BeEmpty(), "Secrets may have it")
			g.Expect(Secrets.MatchString(text)).To(BeTrue(), "in a log")
		})
	}
	for situation, text := range map[string]string{"a private key": aKey, "a kubeconfig": kubeconfig} {
		for before := range 3 {
			t.Run(situation+" in base64", func(t *testing.T) {
				NewWithT(t).Expect(SecretIn(annotated("data:;base64," + encoded(strings.Repeat("#", before)+text)))).NotTo(BeEmpty())
			})
		}
	}
}

func TestTextsWithoutSecrets(t *testing.T) {
	for situation, object := range map[string]map[string]any{
		"a boot URL": {
			"kind": "BareMetalHost", "apiVersion": "metal3.io/v1alpha1",
			"spec": map[string]any{"image": map[string]any{"url": "https://assisted/images?version=4.19&api_key=" + aToken + "&type=minimal"}},
		},
		"a condition of assisted-service": {
			"kind": "Agent", "apiVersion": "agent-install.openshift.io/v1beta1",
			"status": map[string]any{"conditions": []any{map[string]any{"message": "https://x?api_key=" + aToken}}},
		},
		"a certificate": {
			"kind": "ConfigMap", "apiVersion": "v1",
			"data": map[string]any{"ca": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"},
		},
		"a certificate in base64": {
			"kind": "ConfigMap", "apiVersion": "v1",
			"data": map[string]any{"ca": base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nMIIB"))},
		},
		"a message that names a condition": {"kind": "Event", "apiVersion": "v1", "message": "the private key of Secret x is not readable"},
	} {
		t.Run(situation, func(t *testing.T) {
			NewWithT(t).Expect(SecretIn(&unstructured.Unstructured{Object: object})).To(BeEmpty())
		})
	}
	message := map[string]any{"kind": "Event", "apiVersion": "v1", "message": "cannot load https://x?api_key=12345678"}
	NewWithT(t).Expect(SecretIn(&unstructured.Unstructured{Object: message})).NotTo(BeEmpty(),
		"our messages have no token, not even in a URL")
}
