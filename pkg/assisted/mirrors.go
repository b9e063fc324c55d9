package assisted

import (
	"crypto/sha256"
	"encoding/hex"
)

// Keys of the ConfigMap with the registry mirrors (getUserTomlConfigMapData in assisted-service's mirror_registry_parser.go).
const (
	RegistriesKey = "registries.conf"
	BundleKey     = "ca-bundle.crt"
)

// MirrorsDigest differs between contents of the ConfigMap with the registry mirrors that assisted-service reads differently.
func MirrorsDigest(data map[string]string) string {
	sum := sha256.Sum256([]byte(data[RegistriesKey] + "\x00" + data[BundleKey]))
	return hex.EncodeToString(sum[:16])
}

// OtherMirrors reports whether a ConfigMap has another content than the one that was registered. An empty digest is no statement: a ConfigMap that does not exist now, or a registration of which
// the content was not recorded.
func OtherMirrors(registered, current string) bool {
	return registered != "" && current != "" && registered != current
}
