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

// Credentials are the contents of a pull secret. They are chosen by the rules of containers/image, with which OpenShift
// reads them (containers-auth.json(5)). Its own code reads them from files only, and go-containerregistry's
// authn/kubernetes has the kubelet's rules, by which those of quay.io/team are of quay.io/teammate as well.
type Credentials struct {
	// auths are by registry, namespace or repository, registries by registry alone: what has a URL as its key, as of old, is its registry's.
	auths, registries map[string]authn.AuthConfig
	digest            string
}

// ParseCredentials reads the value of a pull secret's key .dockerconfigjson. Its error says nothing of the contents.
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

// dockerRegistry is Docker's registry in the names of images.
const dockerRegistry = "docker.io"

// registryOf is the registry of a place. That of Docker has several names.
func registryOf(place string) string {
	registry, _, _ := strings.Cut(place, "/")
	if registry == dockerRegistry || registry == "registry-1.docker.io" {
		return name.DefaultRegistry
	}
	return registry
}

// For returns the credentials of a repository: those of the longest of its prefixes that has some.
func (c Credentials) For(repository name.Repository) authn.Authenticator {
	if auth, ok := c.of(repository.Name()); ok {
		return authn.FromConfig(auth)
	}
	return authn.Anonymous
}

// Cover reports whether there are credentials for a place: a registry, a repository, or an image by its digest.
func (c Credentials) Cover(place string) bool {
	place, _, _ = strings.Cut(place, "@")
	_, ok := c.of(place)
	return ok
}

// of finds what is said of a repository or registry. A namespace of Docker is one of docker.io, as in the names of
// images, whatever go-containerregistry calls it.
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
