package release

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestPlacesThatCredentialsCover(t *testing.T) {
	g := NewWithT(t)
	credentials, err := ParseCredentials([]byte(`{"auths":{"mirror:5000":{"auth":"dTpw"},"https://registry.lab.example":{"auth":"dTpw"},"quay.io/team":{"auth":"dTpw"},"quay.io/other/x":{"auth":"dTpw"}}}`))
	g.Expect(err).NotTo(HaveOccurred())
	for place, covered := range map[string]bool{
		"mirror:5000": true, "mirror:5000/ocp/release": true, "mirror": false, "registry.lab.example": true, "quay.io/team/x@sha256:aa": true, "quay.io/team": true,
		"quay.io": false, "quay.io/other/x@sha256:aa": true, "quay.io/other/y": false, "quay.io/teammate/x": false, "": false,
	} {
		g.Expect(credentials.Cover(place)).To(Equal(covered), place)
	}
}
