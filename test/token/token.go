// Package token makes the tokens of assisted-service's local authentication, for the real service and for the simulated one.
package token

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"github.com/golang-jwt/jwt/v5"
)

// The claims of a token: it is about an InfraEnv or about a cluster, by their ids in the service.
const (
	InfraEnv = "infra_env_id"
	Cluster  = "cluster_id"
)

// Key signs tokens: JWT, ES256, without expiry. The algorithm is randomized: two tokens for the same subject differ.
type Key struct{ private *ecdsa.PrivateKey }

// NewKey returns a new key.
func NewKey() (*Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot create the key of tokens: %w", err)
	}
	return &Key{private}, nil
}

// Sign returns a token with one claim, for example [InfraEnv] and its id.
func (k *Key) Sign(claim, id string) (string, error) {
	signed, err := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{claim: id}).SignedString(k.private)
	if err != nil {
		return "", fmt.Errorf("cannot sign a token: %w", err)
	}
	return signed, nil
}

// Valid reports whether the key signed the token.
func (k *Key) Valid(signed string) bool {
	_, err := jwt.Parse(signed, func(*jwt.Token) (any, error) { return &k.private.PublicKey, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodES256.Alg()}))
	return err == nil
}

// PEM returns both halves of the key.
func (k *Key) PEM() (private, public string, err error) {
	der, err := x509.MarshalECPrivateKey(k.private)
	if err != nil {
		return "", "", fmt.Errorf("cannot encode a private key: %w", err)
	}
	publicDER, err := x509.MarshalPKIXPublicKey(k.private.Public())
	if err != nil {
		return "", "", fmt.Errorf("cannot encode a public key: %w", err)
	}
	encode := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return encode("EC PRIVATE KEY", der), encode("PUBLIC KEY", publicDER), nil
}
