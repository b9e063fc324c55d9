package env

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// tokenKey signs the tokens of assisted-service's local authentication: JWT, ES256, without expiry.
type tokenKey struct{ key *ecdsa.PrivateKey }

func newTokenKey() (*tokenKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot create the key of assisted-service: %w", err)
	}
	return &tokenKey{key: key}, nil
}

// pem returns both halves of the key.
func (t *tokenKey) pem() (private, public string, err error) {
	encoded, err := encodeKey(t.key)
	if err != nil {
		return "", "", err
	}
	der, err := x509.MarshalPKIXPublicKey(t.key.Public())
	if err != nil {
		return "", "", fmt.Errorf("cannot encode a public key: %w", err)
	}
	return string(encoded), string(encodePEM("PUBLIC KEY", der)), nil
}

func (t *tokenKey) sign(claims map[string]string) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("cannot encode the claims of a token: %w", err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"ES256","typ":"JWT"}`)) + "." + encode(payload)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, t.key, digest[:])
	if err != nil {
		return "", fmt.Errorf("cannot sign a token: %w", err)
	}
	const half = 32 // bytes of each number of a P-256 signature
	signature := make([]byte, 2*half)
	r.FillBytes(signature[:half])
	s.FillBytes(signature[half:])
	return signed + "." + encode(signature), nil
}
