package release

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const (
	// downloadTimeout limits the download from one registry.
	downloadTimeout = 30 * time.Second
	// maxLayers limits the layers that are searched, from the newest on. "oc adm release new" writes all manifests of a
	// release to one layer, the last.
	maxLayers = 3
	// largestLayer limits a layer as it is transferred, in bytes. The manifests of a release have about 1 MiB.
	largestLayer = 16 << 20
)

// referencesFrom downloads the image references of a release from one registry.
func (r *Reader) referencesFrom(ctx context.Context, at origin) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	puller, err := remote.NewPuller(append(r.options(at), remote.WithContext(ctx))...)
	if err != nil {
		return nil, classify(at.host(), err, downloadTimeout)
	}
	d := &download{puller: puller, at: at, ctx: ctx}
	manifest, err := d.manifest(at.ref)
	if err != nil {
		return nil, err
	}
	return d.references(manifest)
}

// download reads the contents of an image in one registry. go-containerregistry verifies the digests.
type download struct {
	puller *remote.Puller
	at     origin
	ctx    context.Context //nolint:containedctx // the context of this download
}

// manifest returns the manifest of an image, in an index that of one platform. All platforms have the same versions.
func (d *download) manifest(ref name.Reference) (*v1.Manifest, error) {
	descriptor, err := d.get(ref)
	if err != nil {
		return nil, err
	}
	if descriptor.MediaType.IsIndex() {
		index, err := v1.ParseIndexManifest(bytes.NewReader(descriptor.Manifest))
		if err != nil {
			return nil, fmt.Errorf("%w: its index is not valid", ErrNoVersion)
		}
		platform, found := platformOf(index)
		if !found {
			return nil, fmt.Errorf("%w: its index has no image for Linux", ErrNoVersion)
		}
		if descriptor, err = d.get(ref.Context().Digest(platform.String())); err != nil {
			return nil, err
		}
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(descriptor.Manifest))
	if err != nil {
		return nil, fmt.Errorf("%w: its manifest is not valid", ErrNoVersion)
	}
	return manifest, nil
}

func (d *download) get(ref name.Reference) (*remote.Descriptor, error) {
	descriptor, err := d.puller.Get(d.ctx, ref)
	if err != nil {
		return nil, classify(d.at.host(), err, downloadTimeout)
	}
	return descriptor, nil
}

// platformOf returns an image of an index: that for linux/amd64, or the first one for Linux.
func platformOf(index *v1.IndexManifest) (digest v1.Hash, found bool) {
	linux := func(m v1.Descriptor) bool { return m.Platform != nil && m.Platform.OS == "linux" }
	chosen := slices.IndexFunc(index.Manifests, func(m v1.Descriptor) bool { return linux(m) && m.Platform.Architecture == "amd64" })
	if chosen < 0 {
		chosen = slices.IndexFunc(index.Manifests, linux)
	}
	if chosen < 0 {
		return v1.Hash{}, false
	}
	return index.Manifests[chosen].Digest, true
}

// references returns the file of the newest layer that has it.
func (d *download) references(manifest *v1.Manifest) ([]byte, error) {
	layers := slices.Clone(manifest.Layers)
	slices.Reverse(layers)
	layers = layers[:min(len(layers), maxLayers)]
	for i := range layers {
		if layers[i].Size > largestLayer {
			continue // of the operating system
		}
		found, err := d.fromLayer(layers[i].Digest)
		if err != nil || found != nil {
			return found, err
		}
	}
	return nil, fmt.Errorf("%w: its newest %d layers have no file %s, so it is no release image", ErrNoVersion, len(layers), referencesFile)
}

// fromLayer returns the file of a layer; nil if the layer has no such file. The layer is read to its end: only then is
// its digest verified.
func (d *download) fromLayer(digest v1.Hash) ([]byte, error) {
	layer, err := d.puller.Layer(d.ctx, d.at.ref.Context().Digest(digest.String()))
	if err != nil {
		return nil, classify(d.at.host(), err, downloadTimeout)
	}
	compressed, err := layer.Compressed()
	if err != nil {
		return nil, classify(d.at.host(), err, downloadTimeout)
	}
	defer func() { _ = compressed.Close() }()
	content, unreadable := extract(compressed)
	if _, err := io.Copy(io.Discard, compressed); err != nil {
		return nil, classify(d.at.host(), err, downloadTimeout)
	}
	return content, unreadable
}
