package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// readImages reads the digests of the pushed images from the file that `make push` writes. The file must list
// all images of this release and no other image.
func (r *release) readImages() error {
	if r.imagesFile == "" {
		return nil
	}
	content, err := os.ReadFile(r.imagesFile)
	if err != nil {
		return fmt.Errorf("cannot read IMAGES: %w", err)
	}
	r.digests = map[string]string{}
	for _, line := range strings.Fields(string(content)) {
		image, err := name.NewDigest(line, name.StrictValidation)
		if err != nil {
			return fmt.Errorf("IMAGES must have lines such as %s/%s@sha256:..., not %q: %w", r.registry, providers[0].image, line, err)
		}
		i := slices.IndexFunc(providers, func(p provider) bool { return image.Context().Name() == r.registry+"/"+p.image })
		if i < 0 {
			return fmt.Errorf("IMAGES has %s, which is not an image of this release: list the images of both managers in REGISTRY (%s)", line,
				r.registry)
		}
		if r.digests[providers[i].image] != "" {
			return fmt.Errorf("IMAGES has %s twice", image.Context().Name())
		}
		r.digests[providers[i].image] = image.DigestStr()
	}
	for _, p := range providers {
		if r.digests[p.image] == "" {
			return fmt.Errorf("IMAGES has no %s/%s", r.registry, p.image)
		}
	}
	return nil
}
