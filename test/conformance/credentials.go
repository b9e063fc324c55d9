package conformance

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"k8s.io/client-go/tools/clientcmd"
)

// credentialsExpiry returns when the credentials of a kubeconfig expire: a client certificate or a token.
// Credentials that never expire are an error.
func credentialsExpiry(kubeconfig []byte) (time.Time, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	switch {
	case len(config.CertData) > 0:
		return certificateExpiry(config.CertData)
	case config.BearerToken != "":
		return tokenExpiry(config.BearerToken)
	default:
		return time.Time{}, errors.New("the kubeconfig has neither a client certificate nor a token")
	}
}

func certificateExpiry(content []byte) (time.Time, error) {
	block, _ := pem.Decode(content)
	if block == nil {
		return time.Time{}, errors.New("the client certificate is not PEM")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot read the client certificate: %w", err)
	}
	return certificate.NotAfter, nil
}

// tokenExpiry returns when a token expires. It does not verify the signature: the server that the token is sent
// to does.
func tokenExpiry(token string) (time.Time, error) {
	claims := &jwt.RegisteredClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(token, claims); err != nil {
		return time.Time{}, fmt.Errorf("cannot read the token: %w", err)
	}
	if claims.ExpiresAt == nil {
		return time.Time{}, errors.New("the token never expires")
	}
	return claims.ExpiresAt.Time, nil
}
