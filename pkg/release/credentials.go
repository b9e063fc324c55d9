package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// Credentials are the contents of a pull secret. The most specific key wins, as in containers/image, which
// OpenShift uses (containers-auth.json(5)). containers/image reads credentials from files only. The keychain
// authn/kubernetes of go-containerregistry has the kubelet's rules, under which a key quay.io/team also applies
// to quay.io/teammate.
type Credentials struct {
	// auths has a registry, namespace or repository as key, registries a registry only. A key in the old form
	// of a URL applies to the whole registry.
	auths, registries map[string]authn.AuthConfig
	digest            string
}

// ParseCredentials parses the value of the key .dockerconfigjson of a pull secret. The error quotes nothing of
// the value.
func ParseCredentials(dockerConfigJSON []byte) (Credentials, error) {
	var config struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	if err := json.Unmarshal(dockerConfigJSON, &config); err != nil {
		return Credentials{}, errors.New("the value is not a docker config: a JSON object with the registries' credentials in auths")
	}
	registries := map[string]authn.AuthConfig{}
	for _, key := range slices.Sorted(maps.Keys(config.Auths)) {
		place := strings.TrimPrefix(strings.TrimPrefix(key, "http://"), "https://")
		if place != key || !strings.Contains(key, "/") {
			registries[registryOf(place)] = config.Auths[key]
		}
	}
	sum := sha256.Sum256(dockerConfigJSON)
	return Credentials{auths: config.Auths, registries: registries, digest: hex.EncodeToString(sum[:])}, nil
}

// dockerRegistry is the registry of Docker in image names.
const dockerRegistry = "docker.io"

// registryOf returns the registry of a place (see Cover). Docker's registry has several names.
func registryOf(place string) string {
	registry, _, _ := strings.Cut(place, "/")
	if registry == dockerRegistry || registry == "registry-1.docker.io" {
		return name.DefaultRegistry
	}
	return registry
}

// For returns the credentials of the longest prefix of a repository that has credentials.
func (c Credentials) For(repository name.Repository) authn.Authenticator {
	if auth, ok := c.of(repository.Name()); ok {
		return authn.FromConfig(auth)
	}
	return authn.Anonymous
}

// Cover reports whether credentials exist for a place: a registry, a repository, or an image by digest.
func (c Credentials) Cover(place string) bool {
	place, _, _ = strings.Cut(place, "@")
	_, ok := c.of(place)
	return ok
}

// of returns the credentials of a repository or registry. Namespaces of Docker have keys with docker.io, as in
// image names; go-containerregistry calls the registry index.docker.io.
func (c Credentials) of(place string) (authn.AuthConfig, bool) {
	if path, ofDocker := strings.CutPrefix(place, name.DefaultRegistry+"/"); ofDocker {
		place = dockerRegistry + "/" + path
	}
	for prefix := place; prefix != ""; prefix = prefix[:max(0, strings.LastIndex(prefix, "/"))] {
		if auth, ok := c.auths[prefix]; ok {
			return auth, true
		}
	}
	auth, ok := c.registries[registryOf(place)]
	return auth, ok
}
