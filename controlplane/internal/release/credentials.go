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
	if auth, ok := c.of(repository.Name()); ok {
		return authn.FromConfig(auth)
	}
	return authn.Anonymous
}

// Cover tells whether there are credentials for a place: a registry, a repository, or an image by its digest.
func (c Credentials) Cover(place string) bool {
	place, _, _ = strings.Cut(place, "@")
	_, ok := c.of(place)
	return ok
}

// of finds what is said of the longest prefix of a repository or registry.
func (c Credentials) of(prefix string) (authn.AuthConfig, bool) {
	for {
		for _, key := range []string{prefix, "https://" + prefix, "http://" + prefix} {
			if auth, ok := c.auths[key]; ok {
				return auth, true
			}
		}
		i := strings.LastIndex(prefix, "/")
		if i < 0 {
			return authn.AuthConfig{}, false
		}
		prefix = prefix[:i]
	}
}
