package assisted

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
)

// InfraEnvOfURL returns the id under which assisted-service knows the InfraEnv whose image or discovery ignition a URL serves, and which dies with the
// InfraEnv. A URL whose token was made anew has the same id, and both work. It is empty for any other URL.
func InfraEnvOfURL(rawURL string) string {
	parsed, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	segments := strings.Split(parsed.Path, "/")
	for i, segment := range segments[:len(segments)-1] {
		switch segment {
		case "byid", "images", "infra-envs":
			return segments[i+1]
		case "byapikey", "bytoken":
			return infraEnvOfToken(segments[i+1])
		}
	}
	return ""
}

// infraEnvOfToken reads the claim of an image's token. The signature is the image service's business.
func infraEnvOfToken(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return ""
	}
	var claims struct {
		InfraEnvID string `json:"infra_env_id"`
		Subject    string `json:"sub"` // of the image service's own tokens, in /bytoken/
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return ""
	}
	if claims.InfraEnvID == "" {
		return claims.Subject
	}
	return claims.InfraEnvID
}
