package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// Credentials are the contents of a pull secret.
type Credentials struct {
	auths  map[string]authn.AuthConfig
	digest string
}

// ParseCredentials reads the value of a pull secret's key .dockerconfigjson. Its error says nothing of the contents.
func ParseCredentials(dockerConfigJSON []byte) (Credentials, error) {
	var config struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	if err := json.Unmarshal(dockerConfigJSON, &config); err != nil {
		return Credentials{}, errors.New("the value is not a docker config: a JSON object with the registries' credentials in auths")
	}
	sum := sha256.Sum256(dockerConfigJSON)
	return Credentials{auths: config.Auths, digest: hex.EncodeToString(sum[:])}, nil
}

// For returns the credentials of a repository: those of the longest of its prefixes that has some, as the container tools do it.
func (c Credentials) For(repository name.Repository) authn.Authenticator {
	for prefix := repository.Name(); prefix != ""; {
		for _, key := range []string{prefix, "https://" + prefix, "http://" + prefix} {
			if auth, ok := c.auths[key]; ok {
				return authn.FromConfig(auth)
			}
		}
		i := strings.LastIndex(prefix, "/")
		if i < 0 {
			break
		}
		prefix = prefix[:i]
	}
	return authn.Anonymous
}
