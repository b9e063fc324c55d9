package redact

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	// maxDepth is the number of levels of a value that are read. What is below is removed.
	maxDepth = 64
	// maxDocument is the length of a string that is read as JSON or YAML.
	maxDocument = 1 << 20
)

// secretNames are parts of names of fields whose values are credentials, in lower case and without separators.
var secretNames = []string{
	"password", "passwd", "passphrase", "token", "secret", "apikey", "privatekey", "accesskey", "clientkey", "encryptionkey",
	"kubeconfig", "ignition", "userdata", "credential", "authorization", "lastappliedconfiguration", "clientcertificatedata",
	"certificateauthoritydata", "mkacak", "mkackn",
}

// secretWords are names of fields whose values are credentials.
var secretWords = []string{"auth", "auths", "psk", "pwd", "contents", "inline", "stringdata"}

// references are ends of names of fields that refer to an object or describe a credential, and contain none.
var references = []string{
	"name", "names", "namespace", "kind", "uid", "ref", "refs", "reference", "type", "version", "apiversion",
	"url", "time", "state", "group",
}

// plain returns a name in lower case without separators.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, name)
}

func isSecret(name string) bool {
	name = plain(name[strings.LastIndex(name, "/")+1:])
	contains := func(part string) bool { return strings.Contains(name, part) }
	return slices.Contains(secretWords, name) || slices.ContainsFunc(secretNames, contains)
}

func isReference(name string) bool {
	name = plain(name)
	ends := func(end string) bool { return strings.HasSuffix(name, end) }
	return !ends("username") && slices.ContainsFunc(references, ends)
}

// credentialOfURL is the API key in a URL, or its password.
var credentialOfURL = regexp.MustCompile(`(?i)(?:api_?key=([^\s&"'\\]+)|://[^\s/@:"']*:([^\s/@"']+)@|/by(?:apikey|token)/([^\s/"']+))`)

// Learn learns the credentials in the URLs of a decoded object.
func (r *Redactor) Learn(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, item := range value {
			r.Learn(item)
		}
	case []any:
		for _, item := range value {
			r.Learn(item)
		}
	case string:
		for _, found := range credentialOfURL.FindAllStringSubmatch(value, -1) {
			for _, credential := range found[1:] {
				r.learn(credential)
				if decoded, err := url.QueryUnescape(credential); err == nil {
					r.learn(decoded)
				}
			}
		}
	}
}

// Object removes the credentials of a decoded object, in place.
func (r *Redactor) Object(object map[string]any) { r.fields(object, false, maxDepth) }

// fields removes the credentials of fields. secret is true below a field that contains credentials.
func (r *Redactor) fields(fields map[string]any, secret bool, depth int) {
	named, _ := fields["name"].(string)
	for name, value := range fields {
		switch address, isText := value.(string); {
		case name == "value" && isSecret(named) && !isReference(named): // an environment variable
			fields[name] = r.value(name, value, true, depth-1)
		case name == "address" && isText && fields["credentialsName"] != nil: // a BMC
			fields[name] = r.bmc(address)
		default:
			fields[name] = r.value(name, value, secret || isSecret(name), depth-1)
		}
	}
}

// value returns the value of a field without credentials.
func (r *Redactor) value(name string, value any, secret bool, depth int) any {
	if depth <= 0 {
		return Removed
	}
	switch value := value.(type) {
	case map[string]any:
		r.fields(value, secret, depth)
	case []any:
		for i := range value {
			value[i] = r.value(name, value[i], secret, depth-1)
		}
	case string:
		if value == "" {
			return value
		}
		if secret && !isReference(name) {
			return Removed
		}
		return r.document(value, depth)
	case bool, nil:
	default:
		if secret && !isReference(name) { // a password of digits
			return Removed
		}
	}
	return value
}

// mentions reports whether a text may contain the name of a field with a credential.
func mentions(text string) bool {
	text = plain(text)
	contains := func(part string) bool { return strings.Contains(text, part) }
	return slices.ContainsFunc(secretNames, contains) || slices.ContainsFunc(secretWords, contains)
}

// document returns a string without credentials. The string may be JSON or YAML, as in annotations.
func (r *Redactor) document(text string, depth int) string {
	trimmed := strings.TrimSpace(text)
	if len(trimmed) > maxDocument || trimmed == "" || !mentions(trimmed) {
		return r.Text(text)
	}
	if strings.ContainsAny(trimmed[:1], "{[") {
		decoder := json.NewDecoder(strings.NewReader(trimmed))
		decoder.UseNumber()
		var value any
		if decoder.Decode(&value) == nil && !decoder.More() {
			var out bytes.Buffer
			encoder := json.NewEncoder(&out)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(r.value("", value, false, depth-1)); err == nil {
				return strings.TrimSpace(out.String())
			}
		}
		return r.Text(text)
	}
	if strings.Contains(trimmed, "\n") && strings.Contains(trimmed, ":") {
		var value map[string]any
		if yaml.Unmarshal([]byte(text), &value) == nil && len(value) > 0 {
			if out, err := yaml.Marshal(r.value("", value, false, depth-1)); err == nil {
				return r.Text(string(out))
			}
		}
	}
	return r.Text(text)
}

// bmc returns the address of a BMC without user, password and query. The path names the system.
func (r *Redactor) bmc(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return r.Text(address)
	}
	kept := url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: r.Text(parsed.Path)}
	return kept.String()
}
