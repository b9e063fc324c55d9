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
	// mostMirrors is how many mirrors of an image are asked, at most, before the registry that it belongs to.
	mostMirrors = 4
	// transports is how many bundles of authorities have connections at a time.
	transports = 16
)

// Sources are where a release image is looked up instead of, and before, the registry in its name. The zero value is
// that registry alone, with the authorities of the system.
type Sources struct {
	// Mirrors are the image as its mirrors name it, in the order in which they are asked.
	Mirrors []string
	// Insecure are those of the Mirrors, and the image itself, whose registries may be queried over plain HTTP.
	Insecure []string
	// Blocked forbids to query the registry in the name of the image.
	Blocked bool
	// Authorities are PEM certificates that are trusted in addition to those of the system.
	Authorities string
}

// errBlocked reports that registries.conf leaves no registry to query.
var errBlocked = fmt.Errorf("%w: registries.conf blocks its registry, and names no mirror to pull it from by tag", ErrUnavailable)

// Version differs between sources that may answer differently: what was found through one cluster's mirrors, or with
// its authorities, is no answer for another cluster. It is empty for the zero value. With mirrors, the credentials
// decide which registry answers; credentials stands for them.
func (s Sources) Version(credentials string) string {
	if len(s.Mirrors) == 0 {
		credentials = ""
	}
	if len(s.Mirrors) == 0 && len(s.Insecure) == 0 && !s.Blocked && s.Authorities == "" {
		return ""
	}
	parts := []string{strings.Join(s.Mirrors, "\x00"), strings.Join(s.Insecure, "\x00"), strconv.FormatBool(s.Blocked), s.Authorities, credentials}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00\x00")))
	return hex.EncodeToString(sum[:])
}

// images are the names of an image in the order in which they are looked up.
func (s Sources) images(image string) []string {
	images := slices.Clone(s.Mirrors[:min(len(s.Mirrors), mostMirrors)])
	if s.Blocked {
		return images
	}
	return append(images, image)
}

// transportFor returns the transport that trusts additional authorities, and no other cluster's.
func (r *Resolver) transportFor(authorities string) http.RoundTripper {
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

// newTransports closes the connections of a bundle that gives way to another.
func newTransports() *lru.Cache[string, *http.Transport] {
	return lru.NewWithEvict(transports, func(_ string, evicted *http.Transport) {
		evicted.CloseIdleConnections()
	})
}

func limited(transport http.RoundTripper) http.RoundTripper {
	return bound.LimitBodies(transport, func(*http.Response) int64 { return largestAnswer })
}
