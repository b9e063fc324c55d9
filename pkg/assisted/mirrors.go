package assisted

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// Keys of the ConfigMap with the registry mirrors (getUserTomlConfigMapData in assisted-service's mirror_registry_parser.go).
const (
	RegistriesKey = "registries.conf"
	BundleKey     = "ca-bundle.crt"
)

const (
	// digestForm precedes a digest of mirrors. Another form of the digest gets another prefix.
	digestForm = "v1-"
	// maxTOMLDepth bounds the nesting of tables and arrays; a registries.conf has three levels.
	maxTOMLDepth = 32
)

// MirrorsDigest differs between contents of the ConfigMap with the registry mirrors that assisted-service and the hosts
// read differently. Comments, the order of the [[registry]] tables and default values make no difference. Neither do the
// order and repetition of certificates: the operator of a hub may rewrite a bundle with the same certificates
// (config.openshift.io/inject-trusted-cabundle).
func MirrorsDigest(data map[string]string) string {
	sum := sha256.Sum256([]byte(canonicalRegistries(data[RegistriesKey]) + "\x00" + canonicalBundle(data[BundleKey])))
	return digestForm + hex.EncodeToString(sum[:16])
}

// canonicalRegistries returns the meaning of a registries.conf, or the text if it is not valid. The order of the mirrors
// of a registry, and that of unqualified-search-registries, has a meaning.
func canonicalRegistries(text string) string {
	var content map[string]any
	if err := bound.UnmarshalTOML(text, &content); err != nil {
		return text
	}
	canonical, err := canonicalTOML(content, maxTOMLDepth)
	if err != nil {
		return text
	}
	table, _ := canonical.(map[string]any)
	if registries, ok := table["registry"].([]any); ok {
		slices.SortFunc(registries, func(a, b any) int { return strings.Compare(textOf(a), textOf(b)) })
	}
	return textOf(canonical)
}

var errTooDeep = errors.New("the TOML document is nested too deeply")

// canonicalTOML returns a value without the keys of tables that have the default value, false or "".
func canonicalTOML(value any, depth int) (canonical any, err error) {
	if depth == 0 {
		return nil, errTooDeep
	}
	switch value := value.(type) {
	case map[string]any:
		table := map[string]any{}
		for key, item := range value {
			if item == false || item == "" {
				continue
			}
			if table[key], err = canonicalTOML(item, depth-1); err != nil {
				return nil, err
			}
		}
		return table, nil
	case []map[string]any:
		items := make([]any, 0, len(value))
		for _, item := range value {
			items = append(items, item)
		}
		return canonicalTOML(items, depth)
	case []any:
		items := make([]any, len(value))
		for i := range value {
			if items[i], err = canonicalTOML(value[i], depth-1); err != nil {
				return nil, err
			}
		}
		return items, nil
	}
	return value, nil
}

// textOf returns a canonical value as text. fmt sorts the keys of maps and quotes strings.
func textOf(value any) string { return fmt.Sprintf("%#v", value) }

// canonicalBundle returns the set of the PEM blocks of a bundle, or the text if it has none.
func canonicalBundle(text string) string {
	var blocks []string
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		blocks = append(blocks, string(pem.EncodeToMemory(block)))
	}
	if len(blocks) == 0 {
		return text
	}
	slices.Sort(blocks)
	return strings.Join(slices.Compact(blocks), "")
}

// OtherMirrors reports whether the content of a ConfigMap differs from the registered content. An empty digest proves
// nothing: the ConfigMap does not exist now, or its content was not recorded at the registration. Neither does a digest
// of another form: an update of the provider registers nothing again.
func OtherMirrors(registered, current string) bool {
	sameForm := strings.HasPrefix(registered, digestForm) && strings.HasPrefix(current, digestForm)
	return sameForm && registered != current
}
