package assisted

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// Keys of the ConfigMap with the registry mirrors (getUserTomlConfigMapData in assisted-service's mirror_registry_parser.go).
const (
	RegistriesKey = "registries.conf"
	BundleKey     = "ca-bundle.crt"
)

// digestForm precedes a digest of mirrors. Another form of the digest gets another prefix.
const digestForm = "v1-"

// MirrorsDigest differs between contents of the ConfigMap with the registry mirrors that assisted-service and the hosts
// read differently. Comments, the order of [[registry]] tables for different registries and default values make no
// difference. Neither do the order and repetition of certificates: the operator of a hub may rewrite a bundle with the same certificates
// (config.openshift.io/inject-trusted-cabundle).
func MirrorsDigest(data map[string]string) string {
	sum := sha256.Sum256([]byte(canonicalRegistries(data[RegistriesKey]) + "\x00" + canonicalBundle(data[BundleKey])))
	return digestForm + hex.EncodeToString(sum[:16])
}

// canonicalRegistries returns the meaning of a registries.conf, or the text if it cannot be decoded. The order of the
// mirrors of a registry, and that of unqualified-search-registries, has a meaning.
func canonicalRegistries(text string) string {
	var content map[string]any
	if err := bound.UnmarshalTOML(text, &content); err != nil {
		return text
	}
	tables, _ := content["registry"].([]map[string]any)
	table, _ := canonicalTOML(content).(map[string]any)
	if registries, ok := table["registry"].([]any); ok && orderless(tables) {
		slices.SortFunc(registries, func(a, b any) int { return strings.Compare(textOf(a), textOf(b)) })
	}
	return textOf(table)
}

// orderless reports whether the order of [[registry]] tables has no meaning. containers/image uses the first table with a
// prefix. assisted-service writes the mirrors of a location in the order of the tables.
func orderless(tables []map[string]any) bool {
	prefixes, locations := sets.New[any](), sets.New[any]()
	for _, table := range tables {
		prefix, _ := table["prefix"].(string)
		location, _ := table["location"].(string)
		prefixes.Insert(cmp.Or(prefix, location))
		locations.Insert(location)
	}
	return prefixes.Len() == len(tables) && locations.Len() == len(tables)
}

// isDefault reports whether containers/image and assisted-service read a value as they read a table without the key.
// assisted-service drops a mirror with pull-from-mirror = "" (parseMirrorRegistries in its pkg/mirrorregistries/parser.go).
func isDefault(key string, value any) bool {
	switch key {
	case "blocked", "insecure", "mirror-by-digest-only":
		return value == false
	case "prefix":
		return value == ""
	}
	return false
}

// canonicalTOML returns a value without the keys of tables that have the default value. The value has few levels (see
// bound.UnmarshalTOML).
func canonicalTOML(value any) any {
	switch value := value.(type) {
	case map[string]any:
		table := map[string]any{}
		for key, item := range value {
			if !isDefault(key, item) {
				table[key] = canonicalTOML(item)
			}
		}
		return table
	case []map[string]any:
		items := make([]any, len(value))
		for i := range value {
			items[i] = canonicalTOML(value[i])
		}
		return items
	case []any:
		items := make([]any, len(value))
		for i := range value {
			items[i] = canonicalTOML(value[i])
		}
		return items
	}
	return value
}

// textOf returns a canonical value as text. fmt sorts the keys of maps and quotes strings.
func textOf(value any) string { return fmt.Sprintf("%#v", value) }

// canonicalBundle returns the set of the PEM blocks of a bundle and the text after the last block. A bundle without a
// block counts as text. assisted-service rejects text after the last block (its ValidatePEMCertificateBundle).
func canonicalBundle(text string) string {
	var blocks []string
	block, rest := pem.Decode([]byte(text))
	for ; block != nil; block, rest = pem.Decode(rest) {
		blocks = append(blocks, string(pem.EncodeToMemory(block)))
	}
	if len(blocks) == 0 {
		return text
	}
	slices.Sort(blocks)
	return strings.Join(slices.Compact(blocks), "") + strings.TrimSpace(string(rest))
}

// OtherMirrors reports whether the content of a ConfigMap differs from the registered content. An empty digest proves
// nothing: the ConfigMap does not exist now, or its content was not recorded at the registration. Neither does a digest
// of another form: an update of the provider registers nothing again.
func OtherMirrors(registered, current string) bool {
	sameForm := strings.HasPrefix(registered, digestForm) && strings.HasPrefix(current, digestForm)
	return sameForm && registered != current
}
