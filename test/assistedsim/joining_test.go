package assistedsim

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"testing"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOnlyKubeletOfHostIsTrusted(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w0"}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.168.111.20"}}
	subject := pkix.Name{CommonName: "system:node:w0", Organization: []string{"system:nodes"}}
	serving := func(ip string) x509.CertificateRequest {
		return x509.CertificateRequest{Subject: subject, DNSNames: []string{"w0"}, IPAddresses: []net.IP{net.ParseIP(ip)}}
	}
	for name, tc := range map[string]struct {
		request x509.CertificateRequest
		user    string
		usage   certificatesv1.KeyUsage
		node    *corev1.Node
		want    bool
	}{
		"to join":                    {x509.CertificateRequest{Subject: subject}, nodeBootstrapper, certificatesv1.UsageClientAuth, nil, true},
		"to join, from another user": {x509.CertificateRequest{Subject: subject}, "other", certificatesv1.UsageClientAuth, nil, false},
		"to join, though it has joined": {
			x509.CertificateRequest{Subject: subject},
			nodeBootstrapper,
			certificatesv1.UsageClientAuth, node, false,
		},
		"to join as another host": {
			x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:w1", Organization: []string{"system:nodes"}}},
			nodeBootstrapper, certificatesv1.UsageClientAuth, nil, false,
		},
		"to serve":                     {serving("192.168.111.20"), "system:node:w0", certificatesv1.UsageServerAuth, node, true},
		"to serve before it joined":    {serving("192.168.111.20"), "system:node:w0", certificatesv1.UsageServerAuth, nil, false},
		"to serve under other address": {serving("192.168.111.21"), "system:node:w0", certificatesv1.UsageServerAuth, node, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			g.Expect(err).NotTo(HaveOccurred())
			der, err := x509.CreateCertificateRequest(rand.Reader, &tc.request, key)
			g.Expect(err).NotTo(HaveOccurred())
			request := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
				Request:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
				Username: tc.user, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, tc.usage},
			}}
			g.Expect(trustworthy(request, "w0", tc.node)).To(Equal(tc.want))
		})
	}
}
