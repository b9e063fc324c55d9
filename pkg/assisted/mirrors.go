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

// OtherMirrors reports whether the content of a ConfigMap differs from the registered content. An empty digest proves
// nothing: the ConfigMap does not exist now, or its content was not recorded at the registration.
func OtherMirrors(registered, current string) bool {
	return registered != "" && current != "" && registered != current
}
