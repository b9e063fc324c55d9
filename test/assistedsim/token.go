package assistedsim

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// tokenSigner makes the tokens of local authentication: JWT, ES256, without expiry. ES256 is randomised, so that two
// tokens for the same InfraEnv differ.
type tokenSigner struct{ key *ecdsa.PrivateKey }

func newTokenSigner() (*tokenSigner, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot generate token key: %w", err)
	}
	return &tokenSigner{key: key}, nil
}

const coordinateSize = 32 // bytes of each half of a P-256 signature

func (t *tokenSigner) infraEnvToken(id string) (string, error) {
	claims, err := json.Marshal(map[string]string{"infra_env_id": id})
	if err != nil {
		return "", fmt.Errorf("cannot marshal claims: %w", err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"ES256","typ":"JWT"}`)) + "." + encode(claims)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, t.key, digest[:])
	if err != nil {
		return "", fmt.Errorf("cannot sign token: %w", err)
	}
	signature := make([]byte, 2*coordinateSize)
	r.FillBytes(signature[:coordinateSize])
	s.FillBytes(signature[coordinateSize:])
	return signed + "." + encode(signature), nil
}

// valid checks the signature.
func (t *tokenSigner) valid(token string) bool {
	dot := strings.LastIndexByte(token, '.')
	if dot < 0 {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(token[dot+1:])
	if err != nil || len(signature) != 2*coordinateSize {
		return false
	}
	digest := sha256.Sum256([]byte(token[:dot]))
	r := new(big.Int).SetBytes(signature[:coordinateSize])
	s := new(big.Int).SetBytes(signature[coordinateSize:])
	return ecdsa.Verify(&t.key.PublicKey, digest[:], r, s)
}
