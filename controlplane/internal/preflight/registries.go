package preflight

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// Registries is the configuration of mirrors in a ConfigMap.
type Registries struct {
	// Problem is why the configuration cannot be used; empty otherwise.
	Problem string
	// Digest differs between contents.
	Digest string

	authorities string
	found       []registry
}

// registry is a part of registries.conf (containers-registries.conf(5)).
type registry struct {
	Prefix   string   `toml:"prefix"`
	Location string   `toml:"location"`
	Insecure bool     `toml:"insecure"`
	Blocked  bool     `toml:"blocked"`
	Mirrors  []mirror `toml:"mirror"`
}

type mirror struct {
	Location       string `toml:"location"`
	Insecure       bool   `toml:"insecure"`
	PullFromMirror string `toml:"pull-from-mirror"`
}

// Values of pull-from-mirror; the empty one is all.
const (
	pullAll     = "all"
	pullDigests = "digest-only"
	pullTags    = "tag-only"
)

// ParseRegistries parses the data of the ConfigMap with a name.
func ParseRegistries(name string, data map[string]string) *Registries {
	var content struct {
		Registries []registry `toml:"registry"`
	}
	digest := assisted.MirrorsDigest(data)
	text, ok := data[assisted.RegistriesKey]
	if !ok {
		return &Registries{Digest: digest, Problem: fmt.Sprintf("ConfigMap %s has no key %s", name, assisted.RegistriesKey)}
	}
	if err := bound.UnmarshalTOML(text, &content); err != nil {
		return &Registries{Digest: digest, Problem: fmt.Sprintf("ConfigMap %s, key %s cannot be read as TOML: %v",
			name, assisted.RegistriesKey, err)}
	}
	parsed := &Registries{Digest: digest, found: content.Registries}
	if len(parsed.mirrors()) == 0 {
		parsed.Problem = fmt.Sprintf("ConfigMap %s, key %s has no mirror. Each [[registry]] needs a location, and a [[registry.mirror]] "+
			"with a location", name, assisted.RegistriesKey)
	}
	if unknown := parsed.unknownPull(); unknown != "" {
		parsed.Problem = fmt.Sprintf("ConfigMap %s, key %s has pull-from-mirror = %q, and no image is pulled from that mirror. Set it to "+
			"%s, %s or %s", name, assisted.RegistriesKey, bound.Value(unknown), pullAll, pullDigests, pullTags)
	}
	parsed.authorities = data[assisted.BundleKey]
	if bundle, ok := data[assisted.BundleKey]; ok && !x509.NewCertPool().AppendCertsFromPEM([]byte(bundle)) {
		parsed.authorities = ""
		parsed.Problem = fmt.Sprintf("ConfigMap %s, key %s has no PEM certificate", name, assisted.BundleKey)
	}
	return parsed
}

// mirrors returns the repositories and registries that are mirrors, in their order.
func (r *Registries) mirrors() []string {
	if r == nil {
		return nil
	}
	var locations []string
	for _, of := range r.found {
		for _, mirror := range of.Mirrors {
			if mirror.Location != "" && of.Location != "" {
				locations = append(locations, mirror.Location)
			}
		}
	}
	return locations
}

// unknownPull returns the first invalid value of pull-from-mirror, or "".
func (r *Registries) unknownPull() string {
	for _, of := range r.found {
		for _, mirror := range of.Mirrors {
			if !slices.Contains([]string{"", pullAll, pullDigests, pullTags}, mirror.PullFromMirror) {
				return mirror.PullFromMirror
			}
		}
	}
	return ""
}

// Authorities returns PEM certificates that are trusted in addition to those of the system, or "".
func (r *Registries) Authorities() string {
	if r == nil {
		return ""
	}
	return r.authorities
}

// MirrorsOf returns the names of an image in its mirrors, in their order. As in containers/image, the entry
// with the longest prefix applies, and the location of the mirror replaces that prefix. A mirror is omitted
// if its pull-from-mirror excludes the image, or if another entry blocks the name in the mirror.
// mirror-by-digest-only is ignored. The samples of assisted-service set it for all mirrors, and mirrors of
// releases have the tags of their source.
func (r *Registries) MirrorsOf(image string) []string {
	entry := r.entryOf(image)
	if entry == nil {
		return nil
	}
	var images []string
	for _, mirror := range entry.Mirrors {
		if name := entry.nameIn(mirror, image); mirror.serves(image) && !r.Blocks(name) {
			images = append(images, name)
		}
	}
	return images
}

// Blocks reports whether registries.conf forbids queries to the registry in the name of an image. The mirrors
// of a blocked registry are still queried. OpenShift writes such entries for sources that are never contacted
// (mirrorSourcePolicy NeverContactSource).
func (r *Registries) Blocks(image string) bool {
	entry := r.entryOf(image)
	return entry != nil && entry.Blocked
}

// serves reports whether pull-from-mirror permits to pull an image from a mirror.
func (m mirror) serves(image string) bool {
	if m.Location == "" {
		return false
	}
	switch byDigest := strings.Contains(image, "@"); m.PullFromMirror {
	case "", pullAll:
		return true
	case pullDigests:
		return byDigest
	case pullTags:
		return !byDigest
	}
	return false
}

// InsecureOf returns the names of an image, in its mirrors and its own, whose registries may be queried over
// plain HTTP. registries.conf has insecure = true for these locations.
func (r *Registries) InsecureOf(image string) []string {
	entry := r.entryOf(image)
	if entry == nil {
		return nil
	}
	var images []string
	for _, mirror := range entry.Mirrors {
		if mirror.Location != "" && mirror.Insecure {
			images = append(images, entry.nameIn(mirror, image))
		}
	}
	// If the location differs from the prefix, insecure applies to the registry of the location, which is not
	// queried.
	if entry.Insecure && (entry.Location == "" || entry.Location == entry.prefix()) {
		images = append(images, image)
	}
	return images
}

// entryOf returns the entry with the longest prefix of an image, or nil.
func (r *Registries) entryOf(image string) *registry {
	if r == nil {
		return nil
	}
	var longest *registry
	for i := range r.found {
		of := &r.found[i]
		if within(image, of.prefix()) && (longest == nil || len(of.prefix()) > len(longest.prefix())) {
			longest = of
		}
	}
	return longest
}

// nameIn returns the name of an image in a mirror.
func (of *registry) nameIn(mirror mirror, image string) string {
	rest := strings.TrimPrefix(image, of.prefix())
	if strings.HasPrefix(of.prefix(), "*.") { // the wildcard matches the host
		host, _, _ := strings.Cut(image, "/")
		rest = strings.TrimPrefix(image, host)
	}
	return strings.TrimSuffix(mirror.Location, "/") + rest
}

// prefix returns the beginning of the image names that an entry applies to.
func (of *registry) prefix() string { return cmp.Or(of.Prefix, of.Location) }

// mirrored reports whether an image has a mirror.
func (r *Registries) mirrored(image string) bool {
	return r != nil && slices.ContainsFunc(r.found, func(of registry) bool {
		return slices.ContainsFunc(of.Mirrors, func(m mirror) bool { return m.serves(image) }) &&
			(within(image, of.Prefix) || within(image, of.Location))
	})
}

// within reports whether an image is below a prefix. The prefix is a registry, possibly with a wildcard for
// the beginning of its name, or a repository.
func within(image, prefix string) bool {
	if domain, wildcard := strings.CutPrefix(prefix, "*."); wildcard {
		host, _, _ := strings.Cut(image, "/")
		return strings.HasSuffix(host, "."+domain)
	}
	rest, found := strings.CutPrefix(image, prefix)
	return prefix != "" && found && (rest == "" || strings.ContainsAny(rest[:1], "/@:"))
}
