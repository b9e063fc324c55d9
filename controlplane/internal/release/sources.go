package release

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"net/http"
	"slices"
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

// Sources are where a release image is looked up instead of, and before, the registry in its name. The zero value is that registry alone, with the authorities of the system.
type Sources struct {
	// Mirrors are the image as its mirrors name it, in the order in which they are asked.
	Mirrors []string
	// Insecure are those of the Mirrors, and the image itself, whose registries may be queried over plain HTTP.
	Insecure []string
	// Authorities are PEM certificates that are trusted in addition to those of the system.
	Authorities string
}

// digest is another one for other sources. What was found through one cluster's mirrors, or with its authorities, is no answer for another cluster.
func (s Sources) digest() string {
	if len(s.Mirrors) == 0 && len(s.Insecure) == 0 && s.Authorities == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(s.Mirrors, "\x00") + "\x00\x00" + strings.Join(s.Insecure, "\x00") + "\x00\x00" + s.Authorities))
	return hex.EncodeToString(sum[:])
}

// images are the names of an image in the order in which they are asked for.
func (s Sources) images(image string) []string {
	return slices.Concat(s.Mirrors[:min(len(s.Mirrors), mostMirrors)], []string{image})
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
	return bound.Answers(transport, func(*http.Response) int64 { return largestAnswer })
}
