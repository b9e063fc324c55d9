package preflight

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// Registries is what a ConfigMap says of mirrors.
type Registries struct {
	// Problem is why it cannot be used; empty when it can.
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

// ParseRegistries reads the data of a ConfigMap of that name.
func ParseRegistries(name string, data map[string]string) *Registries {
	var content struct {
		Registries []registry `toml:"registry"`
	}
	digest := assisted.MirrorsDigest(data)
	text, ok := data[assisted.RegistriesKey]
	if !ok {
		return &Registries{Digest: digest, Problem: fmt.Sprintf("ConfigMap %s has no key %s", name, assisted.RegistriesKey)}
	}
	if err := toml.Unmarshal([]byte(text), &content); err != nil {
		return &Registries{Digest: digest, Problem: fmt.Sprintf("ConfigMap %s, key %s is no TOML: %v", name, assisted.RegistriesKey, err)}
	}
	parsed := &Registries{Digest: digest, found: content.Registries}
	if len(parsed.mirrors()) == 0 {
		parsed.Problem = fmt.Sprintf("ConfigMap %s, key %s names no mirror: each [[registry]] needs a location, and a [[registry.mirror]] with one", name, assisted.RegistriesKey)
	}
	if unknown := parsed.unknownPull(); unknown != "" {
		parsed.Problem = fmt.Sprintf("ConfigMap %s, key %s has pull-from-mirror = %q, and no image is pulled from that mirror: set it to %s, %s or %s", name, assisted.RegistriesKey, bound.Value(unknown), pullAll, pullDigests, pullTags)
	}
	parsed.authorities = data[assisted.BundleKey]
	if bundle, ok := data[assisted.BundleKey]; ok && !x509.NewCertPool().AppendCertsFromPEM([]byte(bundle)) {
		parsed.authorities = ""
		parsed.Problem = fmt.Sprintf("ConfigMap %s, key %s has no PEM certificate", name, assisted.BundleKey)
	}
	return parsed
}

// mirrors are the repositories, or registries, that take the place of others, in the order in which they stand.
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

// unknownPull returns the first value of pull-from-mirror that has no meaning; empty: none.
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

// Authorities are PEM certificates that are trusted in addition to those of the system; empty: none.
func (r *Registries) Authorities() string {
	if r == nil {
		return ""
	}
	return r.authorities
}

// MirrorsOf are the names that an image has in its mirrors, in the order in which they stand. As containers/image does
// it, the entry with the longest prefix counts, and the location of the mirror takes the place of that prefix. A mirror
// is left out if its pull-from-mirror excludes the image, or if another entry blocks the name in the mirror.
// mirror-by-digest-only is ignored: the samples of assisted-service set it for all mirrors, and mirrors of releases
// have the tags of their source.
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

// Blocks reports whether registries.conf forbids to query the registry in the name of an image. The mirrors of a
// blocked registry are queried all the same: so OpenShift writes that a source is never contacted (mirrorSourcePolicy
// NeverContactSource).
func (r *Registries) Blocks(image string) bool {
	entry := r.entryOf(image)
	return entry != nil && entry.Blocked
}

// serves reports whether an image is pulled from a mirror, as far as pull-from-mirror decides it.
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

// InsecureOf returns the names of an image, in its mirrors and its own, whose registries may be queried over plain
// HTTP: registries.conf sets insecure = true for these locations.
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
	// With a location other than the prefix, insecure is about the registry of that location, which is not queried.
	if entry.Insecure && (entry.Location == "" || entry.Location == entry.prefix()) {
		images = append(images, image)
	}
	return images
}

// entryOf returns the entry with the longest prefix that an image is below; nil when no entry is about the image.
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

// nameIn returns the name that an image has in a mirror.
func (of *registry) nameIn(mirror mirror, image string) string {
	rest := strings.TrimPrefix(image, of.prefix())
	if strings.HasPrefix(of.prefix(), "*.") { // it stands for the host
		host, _, _ := strings.Cut(image, "/")
		rest = strings.TrimPrefix(image, host)
	}
	return strings.TrimSuffix(mirror.Location, "/") + rest
}

// prefix is what names of images begin with that an entry is about.
func (of *registry) prefix() string { return cmp.Or(of.Prefix, of.Location) }

// mirrored reports whether a mirror takes the place of where an image is.
func (r *Registries) mirrored(image string) bool {
	return r != nil && slices.ContainsFunc(r.found, func(of registry) bool {
		return slices.ContainsFunc(of.Mirrors, func(m mirror) bool { return m.serves(image) }) && (within(image, of.Prefix) || within(image, of.Location))
	})
}

// within reports whether an image is below a prefix: a registry, also with a wildcard for the first parts of its name, or a repository.
func within(image, prefix string) bool {
	if domain, wildcard := strings.CutPrefix(prefix, "*."); wildcard {
		host, _, _ := strings.Cut(image, "/")
		return strings.HasSuffix(host, "."+domain)
	}
	rest, found := strings.CutPrefix(image, prefix)
	return prefix != "" && found && (rest == "" || strings.ContainsAny(rest[:1], "/@:"))
}
