package conformance

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

var expiry = time.Date(2031, time.May, 6, 7, 8, 9, 0, time.UTC)

func TestExpiryOfCredentials(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, test := range map[string]struct {
		user  clientcmdapi.AuthInfo
		wrong string
	}{
		"client certificate": {user: clientcmdapi.AuthInfo{ClientCertificateData: certificate(t, key), ClientKeyData: []byte("not read")}},
		"token": {user: clientcmdapi.AuthInfo{Token: token(t, key,
			jwt.RegisteredClaims{ExpiresAt: jwt.NewNumericDate(expiry)})}},
		"token that never expires": {user: clientcmdapi.AuthInfo{Token: token(t, key, jwt.RegisteredClaims{})}, wrong: "never expires"},
		"opaque token":             {user: clientcmdapi.AuthInfo{Token: "sha256~opaque"}, wrong: "cannot read the token"},
		"password":                 {user: clientcmdapi.AuthInfo{Username: "admin", Password: "secret"}, wrong: "neither"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found, err := credentialsExpiry(kubeconfigOf(t, test.user))
			if test.wrong != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.wrong)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found).To(BeTemporally("==", expiry))
		})
	}
}

func kubeconfigOf(t *testing.T, user clientcmdapi.AuthInfo) []byte {
	t.Helper()
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: "https://api.example.com:6443"}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": &user},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return content
}

func certificate(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: expiry}
	content, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: content})
}

func token(t *testing.T, key *ecdsa.PrivateKey, claims jwt.RegisteredClaims) string {
	t.Helper()
	signed, err := jwt.NewWithClaims(jwt.SigningMethodES256, claims).SignedString(key)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return signed
}
