package assisted

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// InfraEnvOfURL returns the id under which assisted-service knows the InfraEnv whose image or discovery ignition a URL
// serves, and which dies with the InfraEnv. A URL whose token was created again has the same id, and both work. It is
// empty for any other URL.
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

// address is a URL in a text, glued to other words or not: a scheme, and all that may belong to a URL behind it.
var address = regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*)(?::|%3a)(?://|\\/\\/|%2f%2f)([^\s"'<>` + "`" + `]*)`)

// token is a JSON Web Token, wherever it stands.
var token = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`)

// bearer is a credential in a header.
var bearer = regexp.MustCompile(`(?i)\b(bearer|basic) [A-Za-z0-9+/._~-]{8,}=*`)

// credentialInWords is a key with its value, as it stands in the query of a URL that was cut off or is quoted without its host.
var credentialInWords = regexp.MustCompile(`(?i)\b(api_key|access_token|token|password|secret|authorization)=[^\s&"',;]+`)

// redactedBytes is how much of a message is looked at: what follows is far behind what bound.Cause leaves.
const redactedBytes = 64 << 10

// RedactURLs takes out of a message what may hold credentials: of each URL everything but scheme and host, and tokens
// and keys wherever they stand. It is for all messages of others (assisted-service, the API server, admission webhooks)
// that go into conditions, events, logs or errors, and bounds them: see bound.Cause.
func RedactURLs(message string) string {
	message = message[:min(len(message), redactedBytes)]
	message = address.ReplaceAllStringFunc(message, redactURL)
	message = bearer.ReplaceAllString(message, "$1 ...")
	message = token.ReplaceAllString(message, "...")
	return bound.Cause(credentialInWords.ReplaceAllString(message, "$1=..."))
}

// endOfHost are the characters that end a host and its port, also in a text that goes on behind a URL without a space.
const endOfHost = `/?#\%,;|(){}&=`

// redactURL leaves scheme and host of what begins like a URL, and the punctuation behind it.
func redactURL(found string) string {
	parts := address.FindStringSubmatch(found)
	scheme, rest := parts[1], strings.TrimRight(parts[2], `.,;:!?)}`)
	behind := parts[2][len(rest):]
	host, path := rest, ""
	if end := strings.IndexAny(rest, endOfHost); end >= 0 {
		host, path = rest[:end], rest[end:]
	}
	if at := strings.LastIndex(host, "@"); at >= 0 {
		host = host[at+1:]
	} else if _, port, _ := strings.Cut(host, ":"); strings.Contains(path, "@") && strings.Trim(port, "0123456789") != "" && !strings.HasPrefix(host, "[") {
		host = "..." // the first part of a password with one of these characters in it
	}
	if path == "" && host == rest || path == "/" && strings.HasPrefix(behind, "...") {
		return found // nothing to hide, or hidden already
	}
	return scheme + "://" + host + "/..." + behind
}
