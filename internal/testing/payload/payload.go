// Package payload creates release images of OpenShift for tests, with the layout of "oc adm release new".
package payload

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// References is the path of the ImageStream with the images of a release.
const References = "release-manifests/image-references"

// File is a file of a layer.
type File struct {
	Name    string
	Content []byte
}

// Tag is an image of a release, with the versions of its components: name=version, separated by commas.
type Tag struct{ Name, Versions string }

// Release is the content of a release image.
type Release struct {
	// Version is the release, for example 4.20.5.
	Version string
	// Kubernetes is its version of Kubernetes, for example 1.33.5. Empty: the release does not state it.
	Kubernetes string
	// Architecture is set as a label, in the notation of tags.
	Architecture string
}

// Image returns a release image. Equal releases have equal digests.
func Image(of Release) (v1.Image, error) {
	references, err := ImageStream(of.Version, of.tags()...)
	if err != nil {
		return nil, err
	}
	metadata := fmt.Appendf(nil, `{"kind":"cincinnati-metadata-v0","version":%q,"previous":[]}`, of.Version)
	system, err := Layer(File{"usr/bin/cluster-version-operator", []byte("program")}, File{"manifests/service.yaml", nil})
	if err != nil {
		return nil, err
	}
	manifests, err := Layer(File{"release-manifests/0000_00_cluster-version-operator_service.yaml", []byte("kind: Service\n")},
		File{References, references}, File{"release-manifests/release-metadata", metadata})
	if err != nil {
		return nil, err
	}
	image, err := FromLayers(system, manifests)
	if err != nil {
		return nil, err
	}
	image, err = mutate.Config(image,
		v1.Config{Labels: map[string]string{"io.openshift.release": of.Version, "architecture": of.Architecture}})
	if err != nil {
		return nil, fmt.Errorf("cannot label a release image: %w", err)
	}
	return image, nil
}

// tags returns some images of a release.
func (r Release) tags() []Tag {
	tags := []Tag{
		{"cluster-version-operator", ""},
		{"cli", "kubectl=1.33.1"},
		{"rhel-coreos", "machine-os=9.6.20250910-0,machine-os-rhel=9.6"},
		{"pod", ""},
	}
	if r.Kubernetes != "" {
		tags = append(tags, Tag{"hyperkube", "kubernetes=" + r.Kubernetes})
	}
	return tags
}

// ImageStream returns the image references of a release.
func ImageStream(release string, tags ...Tag) ([]byte, error) {
	type object = map[string]any
	list := make([]object, 0, len(tags))
	for _, tag := range tags {
		annotations := object{"io.openshift.build.source-location": "https://github.com/openshift/" + tag.Name}
		if tag.Versions != "" {
			annotations["io.openshift.build.versions"] = tag.Versions
		}
		list = append(list, object{
			"name": tag.Name, "annotations": annotations,
			"from": object{"kind": "DockerImage", "name": "quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:" + tag.Name},
		})
	}
	text, err := json.MarshalIndent(object{
		"kind": "ImageStream", "apiVersion": "image.openshift.io/v1", "metadata": object{"name": release},
		"spec": object{"lookupPolicy": object{"local": false}, "tags": list}, "status": object{"dockerImageRepository": ""},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot write an ImageStream: %w", err)
	}
	return text, nil
}

// Layer returns a layer with files: a tar archive that is compressed by gzip.
func Layer(files ...File) ([]byte, error) {
	var content bytes.Buffer
	compressed := gzip.NewWriter(&content)
	archive := tar.NewWriter(compressed)
	for _, file := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: file.Name, Size: int64(len(file.Content)), Mode: 0o644}
		if err := archive.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("cannot write a layer: %w", err)
		}
		if _, err := archive.Write(file.Content); err != nil {
			return nil, fmt.Errorf("cannot write a layer: %w", err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("cannot write a layer: %w", err)
	}
	if err := compressed.Close(); err != nil {
		return nil, fmt.Errorf("cannot write a layer: %w", err)
	}
	return content.Bytes(), nil
}

// FromLayers returns an image with layers, the oldest first, which need not be valid.
func FromLayers(layers ...[]byte) (v1.Image, error) {
	image := empty.Image
	for _, layer := range layers {
		var err error
		if image, err = mutate.AppendLayers(image, static.NewLayer(layer, types.DockerLayer)); err != nil {
			return nil, fmt.Errorf("cannot create an image: %w", err)
		}
	}
	return image, nil
}
