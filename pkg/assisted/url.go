package assisted

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// InfraEnvIDOfURL returns the ID of the InfraEnv in assisted-service whose image or discovery ignition a URL
// serves. The URL is valid as long as this InfraEnv exists. A URL with a renewed token has the same ID, and
// both work. It returns "" for any other URL.
func InfraEnvIDOfURL(rawURL string) string {
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
			return infraEnvIDOfToken(segments[i+1])
		}
	}
	return ""
}

// infraEnvIDOfToken reads the ID from the claims of an image token. It does not verify the signature, which
// the image service does.
func infraEnvIDOfToken(token string) string {
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
		Subject    string `json:"sub"` // in tokens of the image service itself, below /bytoken/
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return ""
	}
	if claims.InfraEnvID == "" {
		return claims.Subject
	}
	return claims.InfraEnvID
}

// urlPattern matches a URL in a text, also without a space around it: a scheme, and all characters that may
// belong to the URL.
var urlPattern = regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*)(?::|%3a)(?://|\\/\\/|%2f%2f)([^\s"'<>` + "`" + `]*)`)

// tokenPattern matches a JSON Web Token.
var tokenPattern = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`)

// authorizationPattern matches a credential in an Authorization header.
var authorizationPattern = regexp.MustCompile(`(?i)\b(bearer|basic) [A-Za-z0-9+/._~-]{8,}=*`)

// credentialPattern matches a key with its value, as in the query of a URL that was cut off or is quoted
// without its host.
var credentialPattern = regexp.MustCompile(`(?i)\b(api_key|access_token|token|password|secret|authorization)=[^\s&"',;]+`)

// maxRedactedBytes bounds how much of a message is read. It is far above the length to which bound.Cause
// shortens it.
const maxRedactedBytes = 64 << 10

// RedactURLs removes possible credentials from a message: everything but scheme and host of each URL, and all
// tokens and keys. Use it for all foreign messages (assisted-service, the API server, admission webhooks)
// that reach conditions, events, logs or errors. It also shortens the message, see bound.Cause.
func RedactURLs(message string) string {
	text := RedactText(message[:min(len(message), maxRedactedBytes)])
	return bound.Cause(credentialPattern.ReplaceAllString(text, "$1=..."))
}

// RedactText removes URLs and tokens from a text of any length, and does not shorten the text. It leaves keys with
// their values to package redact of the plugin, which finds more of them.
func RedactText(text string) string {
	text = urlPattern.ReplaceAllStringFunc(text, redactURL)
	text = authorizationPattern.ReplaceAllString(text, "$1 ...")
	return tokenPattern.ReplaceAllString(text, "...")
}

// hostEnd are the characters that end a host with its port, also if a text follows the URL without a space.
const hostEnd = `/?#\%,;|(){}&=`

// redactURL returns scheme and host of a matched URL, and the punctuation behind it.
func redactURL(found string) string {
	parts := urlPattern.FindStringSubmatch(found)
	scheme, rest := parts[1], strings.TrimRight(parts[2], `.,;:!?)}`)
	punctuation := parts[2][len(rest):]
	host, path := rest, ""
	if end := strings.IndexAny(rest, hostEnd); end >= 0 {
		host, path = rest[:end], rest[end:]
	}
	if at := strings.LastIndex(host, "@"); at >= 0 {
		host = host[at+1:]
	} else if _, port, _ := strings.Cut(host, ":"); strings.Contains(path, "@") && strings.Trim(port, "0123456789") != "" &&
		!strings.HasPrefix(host, "[") {
		host = "..." // the start of a password that contains a character of hostEnd
	}
	if path == "" && host == rest || path == "/" && strings.HasPrefix(punctuation, "...") {
		return found // no credentials, or already redacted
	}
	return scheme + "://" + host + "/..." + punctuation
}
