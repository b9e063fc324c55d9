package release

import (
	"bytes"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	. "github.com/onsi/gomega"
)

// FuzzCredentials: For returns credentials for each place that Cover accepts, and never those of another
// registry. The error quotes nothing.
func FuzzCredentials(f *testing.F) {
	for _, secret := range []string{
		`{"auths":{"quay.io":{"auth":"dTpw"},"registry-a":{"username":"u","password":"p"}}}`,
		`{"auths":{"https://index.docker.io/v1/":{"auth":"dTpw"},"docker.io/team":{"auth":"dTpw"}}}`,
		`{"auths":{"quay.io/team":{"auth":"%"}}}`, `{"auths":{"quay.io/team":{"auth":"dTpw"}}}`, `{"auths":{"":{}}}`,
		`{"auths":{"/":{},"//":{},"https://":{}}}`, `{"auths":null}`, `{"auths":{"quay.io":null}}`, `[]`, ``,
	} {
		f.Add([]byte(secret), "quay.io/team/x")
		f.Add([]byte(secret), "team/x")
	}
	f.Fuzz(func(t *testing.T, secret []byte, place string) {
		g := NewWithT(t)
		credentials, err := ParseCredentials(secret)
		if err != nil {
			g.Expect(err).To(MatchError("the value is not a docker config: a JSON object with the registries' credentials in auths"))
			return
		}
		covered := credentials.Cover(place)
		repository, err := name.NewRepository(place, name.StrictValidation)
		if err != nil {
			return
		}
		if credentials.Cover(repository.Name()) {
			g.Expect(credentials.For(repository)).NotTo(Equal(authn.Anonymous))
		} else {
			g.Expect(credentials.For(repository)).To(Equal(authn.Anonymous))
		}
		if covered {
			g.Expect(bytes.ContainsAny(secret, `"`)).To(BeTrue())
		}
	})
}
