package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/pki"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

const (
	// mirrorName is the placeholder in samples for the registry of a site without internet access.
	mirrorName = "mirror.example.com:8443"
	// releaseRepository is the repository of release images; mirroredRepository is their repository in the
	// mirror.
	releaseRepository, mirroredRepository = "quay.io/openshift-release-dev/ocp-release", "/openshift/release-images"
)

var (
	// ErrNotMirrored reports that no mirror has the image for a host without internet access.
	ErrNotMirrored = errors.New("no mirror has the image")
	errForeign     = errors.New("the image is not for the architecture of the host")
)

// Mirror is a registry with HTTPS under its own CA that requires credentials. Hosts with mirrors reach no other
// registry.
type Mirror struct {
	*Registry
	authority *pki.Authority
}

// startMirror serves a mirror until ctx ends.
func startMirror(ctx context.Context) (*Mirror, error) {
	authority, err := pki.New("mirror")
	if err != nil {
		return nil, err
	}
	certificate, err := authority.ServerCertificate()
	if err != nil {
		return nil, err
	}
	registry, err := serveRegistry(ctx, &certificate, wantCredentials)
	if err != nil {
		return nil, err
	}
	transport, err := trusting(string(authority.PEM()))
	if err != nil {
		return nil, err
	}
	registry.writer = append(registry.writer, remote.WithTransport(transport),
		remote.WithAuth(authn.FromConfig(authn.AuthConfig{Auth: PullSecretAuth})))
	return &Mirror{Registry: registry, authority: authority}, nil
}

// wantCredentials rejects requests without the credentials of the lab's pull secrets.
func wantCredentials(images http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Authorization") != "Basic "+PullSecretAuth {
			w.Header().Set("WWW-Authenticate", `Basic realm="mirror"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, request)
	})
}

// take pushes the release image of a version to the mirror, and returns its name in the original repository.
func (m *Mirror) take(version string, known *Registry) (string, error) {
	of := release{strings.TrimPrefix(version, "v"), "x86_64"}
	byDigest, err := m.write(m.address+mirroredRepository+":"+of.version, of)
	if err != nil {
		return "", err
	}
	_, digest, _ := strings.Cut(byDigest, "@")
	image := releaseRepository + "@" + digest
	return image, known.recordRelease(image, of)
}

// pull simulates the image pull of a host. An image for another architecture fails. Without mirrors any other
// pull succeeds.
func (l *Lab) pull(ctx context.Context, p hosts.Pull) error {
	if of := l.Registry.of(p.Image).architecture; of != "" && of != multi && of != tagArchitecture(p.Architecture) {
		return fmt.Errorf("%w: it is for %s, and not for %s", errForeign, of, p.Architecture)
	}
	if p.Registries == "" {
		return nil
	}
	return pullFromMirrors(ctx, p)
}

// registries has the fields of registries.conf about mirrors (containers-registries.conf(5)).
type registries struct {
	Registries []struct {
		Prefix   string `toml:"prefix"`
		Location string `toml:"location"`
		Mirrors  []struct {
			Location string `toml:"location"`
		} `toml:"mirror"`
	} `toml:"registry"`
}

// pullFromMirrors requests an image from its mirrors, with the credentials and CAs of the host.
func pullFromMirrors(ctx context.Context, p hosts.Pull) error {
	var config registries
	if err := toml.Unmarshal([]byte(p.Registries), &config); err != nil {
		return fmt.Errorf("cannot read registries.conf: %w", err)
	}
	failures := []error{fmt.Errorf("%w: %s", ErrNotMirrored, p.Image)}
	for _, registry := range config.Registries {
		prefix := registry.Location
		if registry.Prefix != "" {
			prefix = registry.Prefix
		}
		rest, found := strings.CutPrefix(p.Image, prefix)
		if !found || rest != "" && !strings.ContainsAny(rest[:1], "/@:") {
			continue
		}
		for _, mirror := range registry.Mirrors {
			err := head(ctx, mirror.Location+rest, p)
			if err == nil {
				return nil
			}
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// head requests an image from its registry.
func head(ctx context.Context, image string, p hosts.Pull) error {
	ref, err := name.ParseReference(image)
	if err != nil {
		return fmt.Errorf("cannot name %s: %w", image, err)
	}
	if !strings.HasPrefix(ref.Context().RegistryStr(), "127.0.0.1:") {
		return fmt.Errorf("the lab has no registry %s", ref.Context().RegistryStr())
	}
	transport, err := trusting(p.Authorities)
	if err != nil {
		return err
	}
	credentials, err := credentialsFor(ref.Context().RegistryStr(), p.Secret)
	if err != nil {
		return err
	}
	if _, err := remote.Head(ref, remote.WithContext(ctx), remote.WithTransport(transport), remote.WithAuth(credentials)); err != nil {
		return fmt.Errorf("cannot pull %s: %w", image, err)
	}
	return nil
}

// trusting returns a transport that trusts the CAs (PEM).
func trusting(authorities string) (http.RoundTripper, error) {
	pool := x509.NewCertPool()
	if authorities != "" && !pool.AppendCertsFromPEM([]byte(authorities)) {
		return nil, errors.New("cannot read the certificates of mirrors")
	}
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}, nil
}

// credentialsFor returns the credentials of a pull secret for a registry.
func credentialsFor(registry, secret string) (authn.Authenticator, error) {
	var content struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	if err := json.Unmarshal([]byte(secret), &content); err != nil {
		return nil, fmt.Errorf("cannot read the pull secret: %w", err)
	}
	if known, found := content.Auths[registry]; found {
		return authn.FromConfig(known), nil
	}
	return authn.Anonymous, nil
}

// secretOfMirror returns a pull secret for the mirror only.
func (l *Lab) secretOfMirror() string {
	return fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, l.Mirror.address, PullSecretAuth)
}

// connect replaces the placeholders of a sample with the mirror, its certificates and credentials, and the
// digest of its release.
func (c *Cluster) connect(object map[string]any) error {
	spec, _ := object["spec"].(map[string]any)
	data, _ := object["data"].(map[string]any)
	secret, _ := object["stringData"].(map[string]any)
	config, _ := spec["config"].(map[string]any)
	if text, ok := data["registries.conf"].(string); ok && strings.Contains(text, mirrorName) {
		data["registries.conf"] = strings.ReplaceAll(text, mirrorName, c.lab.Mirror.address)
		data["ca-bundle.crt"] = string(c.lab.Mirror.authority.PEM())
	}
	if text, ok := secret[corev1.DockerConfigJsonKey].(string); ok && strings.Contains(text, mirrorName) {
		secret[corev1.DockerConfigJsonKey] = c.lab.secretOfMirror()
	}
	if image, found := config["releaseImage"]; found {
		var err error
		if config["releaseImage"], err = c.mirrored(image, spec["distributionVersion"]); err != nil {
			return err
		}
	}
	topology, _ := spec["topology"].(map[string]any)
	variables, _ := topology["variables"].([]any)
	for _, variable := range variables {
		if v, ok := variable.(map[string]any); ok && v["name"] == "releaseImage" {
			var err error
			if v["value"], err = c.mirrored(v["value"], topologyVariable(object, "distributionVersion")); err != nil {
				return err
			}
		}
	}
	return nil
}

// mirrored returns the release image of a version in the mirror for a placeholder, and any other image
// unchanged.
func (c *Cluster) mirrored(image, version any) (any, error) {
	if text, ok := image.(string); !ok || !strings.HasPrefix(text, releaseRepository+"@") {
		return image, nil
	}
	return c.lab.Mirror.take(fmt.Sprint(version), c.lab.Registry)
}
