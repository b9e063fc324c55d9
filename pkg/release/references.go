package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

const (
	// referencesFile is the ImageStream with the images of a release.
	referencesFile = "release-manifests/image-references"
	// versionsAnnotation of a tag has the versions of the components in its image: name=version, separated by commas.
	versionsAnnotation = "io.openshift.build.versions"

	// largestContents limits a decompressed layer up to the file, in bytes. A release has about 10 MiB.
	largestContents = 128 << 20
	// maxFiles limits the files of a layer up to the file. A release has about 1,500.
	maxFiles = 20_000
	// largestReferences limits the file, in bytes. A release has about 200 KiB.
	largestReferences = 4 << 20
	// maxTags limits the images of a release, which has about 200.
	maxTags = 2_000
)

// extract returns the image references in a layer; nil if the layer has no such file. The layer is a tar archive that is
// compressed by gzip. "oc adm release new" writes no other layers. Mirrors cannot compress them in another way, because
// the digest would change.
func extract(layer io.Reader) ([]byte, error) {
	decompressed, err := gzip.NewReader(layer)
	if err != nil {
		return nil, fmt.Errorf("%w: a layer is not compressed by gzip", ErrNoVersion)
	}
	limited := &io.LimitedReader{R: decompressed, N: largestContents}
	content, err := find(tar.NewReader(limited))
	switch {
	case limited.N == 0:
		return nil, fmt.Errorf("%w: a layer has more than %d MiB", ErrNoVersion, largestContents>>20)
	case errors.Is(err, ErrNoVersion):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: a layer is not a valid archive", ErrNoVersion)
	}
	return content, nil
}

// find reads an archive up to the file.
func find(archive *tar.Reader) ([]byte, error) {
	for range maxFiles {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err //nolint:wrapcheck // the caller replaces the error
		}
		switch {
		case strings.TrimPrefix(header.Name, "./") != referencesFile:
			continue
		case header.Size > largestReferences:
			return nil, fmt.Errorf("%w: %s has more than %d MiB", ErrNoVersion, referencesFile, largestReferences>>20)
		}
		return io.ReadAll(archive)
	}
	return nil, fmt.Errorf("%w: a layer has more than %d files", ErrNoVersion, maxFiles)
}

// Contents are the statements of a release image about its release.
type Contents struct {
	// Release is the name of the release, such as 4.20.5. The image may state any text.
	Release string
	// Kubernetes is the version of Kubernetes, such as v1.33.5. API servers and kubelets of the release report this version.
	// Those of 4.14 to 4.16 report it with a hash.
	Kubernetes string
}

// imageStream has the fields of the image references that are read. The cluster version operator requires that the name is
// that of the release.
type imageStream struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Tags tags `json:"tags"`
	} `json:"spec"`
}

type tag struct {
	Annotations struct {
		Versions string `json:"io.openshift.build.versions"` // versionsAnnotation
	} `json:"annotations"`
}

type tags []tag

var errTooManyTags = errors.New("too many tags")

// UnmarshalJSON implements json.Unmarshaler. It reads at most maxTags tags: in memory, an empty tag has more bytes than
// in the text.
func (t *tags) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if start, err := decoder.Token(); err != nil || start != json.Delim('[') {
		return err //nolint:wrapcheck // the caller replaces the error
	}
	for decoder.More() {
		if len(*t) == maxTags {
			return errTooManyTags
		}
		var next tag
		if err := decoder.Decode(&next); err != nil {
			return err //nolint:wrapcheck // likewise
		}
		*t = append(*t, next)
	}
	return nil
}

// contentsOf returns the statements of image references.
func contentsOf(references []byte) (Contents, error) {
	var stream imageStream
	err := json.Unmarshal(references, &stream)
	switch {
	case errors.Is(err, errTooManyTags):
		return Contents{}, fmt.Errorf("%w: %s has more than %d tags", ErrNoVersion, referencesFile, maxTags)
	case err != nil, stream.Kind != "ImageStream":
		return Contents{}, fmt.Errorf("%w: %s is not a valid ImageStream", ErrNoVersion, referencesFile)
	}
	kubernetes, err := kubernetesVersion(stream.Spec.Tags)
	if err != nil {
		return Contents{}, err
	}
	return Contents{Release: bound.Value(stream.Metadata.Name), Kubernetes: kubernetes}, nil
}

// kubernetesVersion returns the version of Kubernetes in image references. Its tags state it without v and without
// hash.
func kubernetesVersion(tags []tag) (string, error) {
	found := ""
	for i := range tags {
		for entry := range strings.SplitSeq(tags[i].Annotations.Versions, ",") {
			component, text, _ := strings.Cut(strings.TrimSpace(entry), "=")
			if component != "kubernetes" {
				continue
			}
			version, err := normalized(text)
			if err != nil {
				return "", err
			}
			if found != "" && found != version {
				return "", fmt.Errorf("%w: %s has %s and %s", ErrNoVersion, referencesFile, found, version)
			}
			found = version
		}
	}
	if found == "" {
		return "", fmt.Errorf("%w: no tag of %s has kubernetes in annotation %s", ErrNoVersion, referencesFile, versionsAnnotation)
	}
	return found, nil
}

// normalized returns a version as API servers report it, without hash.
func normalized(text string) (string, error) {
	version, err := versions.ParseKubernetes(text)
	if err != nil || len(text) > bound.ValueBytes {
		return "", fmt.Errorf("%w: %s has kubernetes=%s", ErrNoVersion, referencesFile, bound.Value(text))
	}
	version.Build = nil
	return "v" + version.String(), nil
}

// CheckKubernetes returns an error if a release cannot have the version of Kubernetes that its image states. The rebases of some
// branches of openshift/kubernetes did not update the label from which the image has the version.
func CheckKubernetes(of semver.Version, version string) error {
	stated, err := versions.ParseKubernetes(version)
	if err != nil || versions.Contradict(of, stated) {
		return fmt.Errorf("%w: it states %s, which OpenShift %d.%d does not have", ErrNoVersion, version, of.Major, of.Minor)
	}
	return nil
}
