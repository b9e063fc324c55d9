package cluster

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn/conntest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// bundleOf returns a bundle with a certificate, and its fingerprint.
func bundleOf(certificate *x509.Certificate) (bundle []byte, fingerprint string) {
	sum := sha256.Sum256(certificate.Raw)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}), hex.EncodeToString(sum[:])
}

func TestAuthoritiesAreRead(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	authority, fingerprint := bundleOf(s.Certificate())
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.visit(t.Context())
	bundle, err := h.Authorities(t.Context(), clusterKey)
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(bundle.Reported).To(BeEmpty(), "the cluster has none")
	s.put(apiServerCAsPath, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "openshift-config-managed",
		Name:      "kube-apiserver-server-ca",
	}, Data: map[string]string{"ca-bundle.crt": "PEM"}})
	bundle, err = h.Authorities(t.Context(), clusterKey)
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(string(bundle.Reported)).To(Equal("PEM"))
	h.Expect(bundle.Serving).To(BeEmpty(), "verification is disabled")

	h = newHub(t, conntest.Kubeconfig(t, s.URL, func(config *clientcmdapi.Config) {
		config.Clusters["c"].InsecureSkipTLSVerify, config.Clusters["c"].CertificateAuthorityData = false,
			authority
	}))
	h.visit(t.Context())
	for range 2 { // the second connection goes on with the session of the first
		bundle, err = h.Authorities(t.Context(), clusterKey)
		h.Expect(err).NotTo(HaveOccurred())
		h.Expect(bundle.Serving.UnsortedList()).To(ConsistOf(fingerprint))
	}
}

func TestAuthoritiesInUseOutliveKubeconfig(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	bundle, fingerprint := bundleOf(s.Certificate())
	verified := func(config *clientcmdapi.Config) {
		config.Clusters["c"].InsecureSkipTLSVerify, config.Clusters["c"].CertificateAuthorityData = false,
			bundle
	}
	h := newHub(t, conntest.Kubeconfig(t, s.URL, verified))
	h.visit(t.Context())
	before, err := h.Authorities(t.Context(), clusterKey)
	h.Expect(err).NotTo(HaveOccurred())
	h.setKubeconfig(t.Context(), conntest.Kubeconfig(t, s.URL, nil)) // nothing is verified by it
	h.visit(t.Context())
	after, err := h.Authorities(t.Context(), clusterKey)
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(after.Serving.UnsortedList()).To(ConsistOf(fingerprint))
	h.Expect(after.Since).To(Equal(before.Since))
	h.Expect(after.Since).NotTo(BeZero())
}

// An API server that has just started may not have the keys of tokens yet.
func TestCredentialsAreRefusedAfterTwoRequests(t *testing.T) {
	for answers, connected := range map[int]bool{1: true, 2: false} {
		s := newAPIServer(t, "secret-token")
		h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
		s.set(func() { s.refusing = answers })
		h.visit(t.Context())
		h.Expect(h.Observe(clusterKey).Connected).To(Equal(connected), strconv.Itoa(answers))
		if !connected {
			h.Expect(h.Observe(clusterKey).Failure.Kind).To(Equal(workload.Unauthorized))
		}
	}
}
