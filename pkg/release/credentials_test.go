package release

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	. "github.com/onsi/gomega"
)

func TestCredentialsCoverRegistriesNamespacesAndRepositories(t *testing.T) {
	g := NewWithT(t)
	credentials, err := ParseCredentials([]byte(`{"auths":{"mirror:5000":{"auth":"dTpw"},
		"https://registry.lab.example":{"auth":"dTpw"},"quay.io/team":{"auth":"dTpw"},"quay.io/other/x":{"auth":"dTpw"},
		"https://old.lab.example/v1/":{"auth":"dTpw"},"https://index.docker.io/v1/":{"auth":"dTpw"}}}`))
	g.Expect(err).NotTo(HaveOccurred())
	for place, covered := range map[string]bool{
		"mirror:5000": true, "mirror:5000/ocp/release": true, "mirror": false, "registry.lab.example": true, "quay.io/team/x@sha256:aa": true,
		"quay.io/team": true,
		"quay.io":      false, "quay.io/other/x@sha256:aa": true, "quay.io/other/y": false, "quay.io/teammate/x": false, "": false,
		"old.lab.example/ocp/release": true, "index.docker.io/team/x": true, "docker.io/team/x": true, "/x": false,
	} {
		g.Expect(credentials.Cover(place)).To(Equal(covered), place)
	}
}

// Docker's registry is docker.io in image names and index.docker.io in requests.
func TestCredentialsOfDockerNamespace(t *testing.T) {
	g := NewWithT(t)
	credentials, err := ParseCredentials([]byte(`{"auths":{"docker.io/team":{"auth":"dTpw"},"registry-1.docker.io/other/x":{"auth":"dTpw"}}}`))
	g.Expect(err).NotTo(HaveOccurred())
	for place, covered := range map[string]bool{
		"docker.io/team/x": true, "index.docker.io/team/x@sha256:aa": true, "docker.io/teammate/x": false, "docker.io": false,
		"index.docker.io": false, "quay.io/team/x": false,
		"registry-1.docker.io/other/x": true, "docker.io/other/x": false,
	} {
		g.Expect(credentials.Cover(place)).To(Equal(covered), place)
	}
	repository, err := name.NewRepository("docker.io/team/x")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(credentials.For(repository)).NotTo(Equal(authn.Anonymous))
}
