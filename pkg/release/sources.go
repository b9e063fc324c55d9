package release

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

const (
	// maxMirrors limits the mirrors that are queried for an image before the registry in its name.
	maxMirrors = 4
	// maxTransports limits the bundles of authorities whose connections are kept.
	maxTransports = 16
)

// Sources configure which registries are queried for a release image, instead of or before the registry in its
// name. The zero value stands for that registry only, with the authorities of the system.
type Sources struct {
	// Mirrors are the names of the image at its mirrors, in the order of the queries.
	Mirrors []string
	// Insecure lists those of the Mirrors, and the image itself, whose registries may be queried over plain
	// HTTP.
	Insecure []string
	// Blocked forbids queries of the registry in the name of the image.
	Blocked bool
	// Authorities are PEM certificates that are trusted in addition to those of the system.
	Authorities string
}

// errBlocked reports that registries.conf leaves no registry to query.
var errBlocked = fmt.Errorf("%w: registries.conf blocks its registry, and names no mirror to pull it from", ErrUnavailable)

// blocked returns errBlocked for an image. Mirrors may serve images only by digest, or only by tag.
func blocked(image string) error {
	if digestOf(image) != "" {
		return fmt.Errorf("%w by digest", errBlocked)
	}
	return fmt.Errorf("%w by tag", errBlocked)
}

// digestOf returns the digest of an image by digest, and an empty string for an image by tag.
func digestOf(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

// Version returns a hash that differs between sources that may give different answers. A digest that one
// cluster's mirrors or authorities led to is not valid for another cluster. It is empty for the zero value.
// With mirrors, the credentials decide which registry answers; the parameter identifies them.
func (s Sources) Version(credentials string) string {
	if len(s.Mirrors) == 0 {
		credentials = ""
	}
	if len(s.Mirrors) == 0 && len(s.Insecure) == 0 && !s.Blocked && s.Authorities == "" {
		return ""
	}
	parts := []string{
		strings.Join(s.Mirrors, "\x00"), strings.Join(s.Insecure, "\x00"), strconv.FormatBool(s.Blocked), s.Authorities,
		credentials,
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00\x00")))
	return hex.EncodeToString(sum[:])
}

// images returns the names of an image in the order of the queries.
func (s Sources) images(image string) []string {
	images := slices.Clone(s.Mirrors[:min(len(s.Mirrors), maxMirrors)])
	if s.Blocked {
		return images
	}
	return append(images, image)
}

// transportFor returns a transport that trusts the given authorities in addition to those of the system, and no
// authorities of other clusters.
func (r *Reader) transportFor(authorities string) http.RoundTripper {
	own, clonable := r.base.(*http.Transport)
	if authorities == "" || !clonable {
		return limited(r.base)
	}
	if known, ok := r.transports.Get(authorities); ok {
		return limited(known)
	}
	trusting := own.Clone()
	roots, err := x509.SystemCertPool()
	if err != nil { // the system has none
		roots = x509.NewCertPool()
	}
	roots.AppendCertsFromPEM([]byte(authorities))
	if trusting.TLSClientConfig == nil {
		trusting.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	trusting.TLSClientConfig.RootCAs = roots
	r.transports.Add(authorities, trusting)
	return limited(trusting)
}

// newTransports returns a cache that closes the idle connections of an evicted transport.
func newTransports() *lru.Cache[string, *http.Transport] {
	return lru.NewWithEvict(maxTransports, func(_ string, evicted *http.Transport) {
		evicted.CloseIdleConnections()
	})
}

func limited(transport http.RoundTripper) http.RoundTripper {
	return bound.LimitBodies(transport, func(response *http.Response) int64 {
		if isLayer(response.Request) {
			return largestLayer
		}
		return largestAnswer
	})
}

// isLayer reports whether a request reads a layer, possibly from a store to which the registry has redirected it.
func isLayer(request *http.Request) bool {
	for request.Response != nil && request.Response.Request != nil {
		request = request.Response.Request
	}
	return strings.HasPrefix(request.URL.Path, "/v2/") && strings.Contains(request.URL.Path, "/blobs/")
}
