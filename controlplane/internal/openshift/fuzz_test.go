package openshift

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// FuzzImage checks that an accepted version has a valid image reference.
func FuzzImage(f *testing.F) {
	for _, version := range []string{"4.19.3", "v4.20.0-rc.1", "4.19.0-okd-scos.5", "4.19.0-ec.1+build.2", "4.19", "", "v", "4.19.3-"} {
		f.Add(version, "x86_64")
		f.Add(version, "multi")
	}
	f.Fuzz(func(t *testing.T, version, architecture string) {
		g := NewWithT(t)
		parsed, err := versions.ParseRelease(version)
		if err != nil || CheckSupported(parsed, Settings{}) != nil || len(version) > 64 {
			return
		}
		switch architecture {
		case "", "x86_64", "aarch64", "arm64", "ppc64le", "s390x", "multi":
		default:
			return // the schema permits no other
		}
		repositories := versions.Repositories{OCP: versions.DefaultOCPRepository, OKD: versions.DefaultOKDRepository}
		_, err = name.ParseReference(versions.Image(parsed, architecture, "", repositories))
		g.Expect(err).NotTo(HaveOccurred())
	})
}
