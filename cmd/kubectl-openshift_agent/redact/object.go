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
	"presharedkey", "kubeconfig", "ignition", "userdata", "configdrive", "credential", "authorization", "cookie",
	"lastappliedconfiguration", "clientcertificatedata", "certificateauthoritydata", "mkacak", "mkackn", "objectsetriocattleioapplied",
}

// secretWords are names of fields whose values are credentials. The commands of an OpenshiftAssistedConfig are any shell.
var secretWords = []string{"contents", "inline", "stringdata", "prebootstrapcommands", "postbootstrapcommands"}

// secretParts are words of names of fields whose values are credentials, such as DB_PWD or basic-auth. The word "pass" is
// one only at the end: BMC_PASS, but not pass-through.
var secretParts = []string{"auth", "auths", "psk", "pwd"}

const lastSecretPart = "pass"

// references are ends of names of fields that refer to an object or describe a credential, and contain none.
var references = []string{
	"name", "names", "namespace", "kind", "uid", "ref", "refs", "reference", "type", "version", "apiversion",
	"url", "time", "state", "group", "available", "created", "ready", "stdin",
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

// isSecret reports whether the value of a field is a credential.
func isSecret(name string) bool {
	whole := plain(name)
	if !strings.Contains(whole, "objectset") {
		name = name[strings.LastIndex(name, "/")+1:]
		whole = plain(name)
	}
	contains := func(part string) bool { return strings.Contains(whole, part) }
	if slices.Contains(secretWords, whole) || slices.ContainsFunc(secretNames, contains) || strings.Contains(name, "-data") {
		return true
	}
	parts := partsOf(name)
	isPart := func(part string) bool { return slices.Contains(secretParts, part) }
	return len(parts) > 0 && (parts[len(parts)-1] == lastSecretPart || slices.ContainsFunc(parts, isPart))
}

// partsOf returns the words of a name in lower case: those of BMC_PASS, bmc-pass and bmcPass are the same.
func partsOf(name string) []string {
	var spaced strings.Builder
	for i, r := range name {
		isUpper := r >= 'A' && r <= 'Z'
		if isUpper && i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z' {
			spaced.WriteByte(' ')
		}
		if strings.ContainsRune("_-./", r) {
			r = ' '
		}
		spaced.WriteRune(r)
	}
	return strings.Fields(strings.ToLower(spaced.String()))
}

// namesSecret reports whether a name or a path in an object, as in a patch, leads to a credential.
func namesSecret(path string) bool {
	return !isReference(path) && slices.ContainsFunc(strings.Split(path, "/"), isSecret)
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

// pairFields are fields with a value whose name is in another field, as in environments, patches, variables of a
// ClusterClass and metadata of Metal3.
var pairFields = []string{"value", "default", "example", "valueFrom", "schema", "definitions"}

// fields removes the credentials of fields. secret is true below a field that contains credentials.
func (r *Redactor) fields(fields map[string]any, secret bool, depth int) {
	named := slices.ContainsFunc(pairNames, func(name string) bool {
		text, _ := fields[name].(string)
		return namesSecret(text)
	})
	for name, value := range fields {
		switch text, isText := value.(string); {
		case named && slices.Contains(pairFields, name):
			fields[name] = r.value(name, value, true, depth-1)
		case name == "address" && isText && fields["credentialsName"] != nil: // a BMC
			fields[name] = r.bmc(text)
		case (name == "apiVersion" || name == "kind") && isText: // a learned word must not hide what the object is
			fields[name] = patterns(text)
		default:
			fields[name] = r.value(name, value, secret || isSecret(name), depth-1)
		}
	}
}

// list removes the credentials of the items of a list, which may be the arguments of a command.
func (r *Redactor) list(name string, items []any, secret bool, depth int) {
	command, previous := "", ""
	for i := range items {
		argument, _ := items[i].(string)
		isUser := slices.Contains(userFlags, previous) && strings.Contains(argument, ":")
		isValue := argument != "" && !strings.HasPrefix(argument, "-")
		follows := isValue && strings.HasPrefix(previous, "-") && isSecretFlag(previous, command)
		items[i] = r.value(name, items[i], secret || isUser || follows || isValue && htpasswd.MatchString(command), depth-1)
		command += " " + argument
		command, previous = command[max(0, len(command)-maxCommand):], argument
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
		r.list(name, value, secret, depth)
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
	return slices.ContainsFunc(secretNames, contains) || slices.ContainsFunc(secretWords, contains) ||
		slices.ContainsFunc(secretParts, contains) || strings.Contains(text, lastSecretPart)
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
		var value any
		if yaml.Unmarshal([]byte(text), &value) == nil && isCollection(value) {
			if out, err := yaml.Marshal(r.value("", value, false, depth-1)); err == nil {
				return r.Text(string(out))
			}
		}
	}
	return r.Text(text)
}

// isCollection reports whether a decoded document has fields or items. A sentence is a document, too.
func isCollection(document any) bool {
	switch document := document.(type) {
	case map[string]any:
		return len(document) > 0
	case []any:
		return len(document) > 0
	}
	return false
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
