// Package redact removes credentials from objects, logs and events before another person gets them. It removes too much
// rather than too little: what may be a credential is replaced.
package redact

import (
	"regexp"
	"slices"
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// Removed replaces a credential.
const Removed = "[redacted]"

// minLearned is the length of a value that is removed wherever it occurs. A shorter value may be a word.
const minLearned = 8

// Redactor removes credentials. It also removes the credentials that it has learned, wherever they occur.
type Redactor struct {
	learned  map[string]struct{}
	replacer *strings.Replacer
}

// New returns a Redactor that has learned nothing.
func New() *Redactor { return &Redactor{learned: map[string]struct{}{}} }

// learn adds a credential.
func (r *Redactor) learn(value string) {
	if len(value) >= minLearned && value != Removed {
		r.learned[value] = struct{}{}
		r.replacer = nil
	}
}

// Patterns of credentials in a text. pkg/assisted has those of URLs and tokens.
var (
	// keyBlock is a private key, up to the end of the text if its end was cut off. Line breaks may be escaped.
	keyBlock = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|\z)`)
	// encoded is the base64 of PEM, of a kubeconfig ("apiVersion:" or "{"), of a pull secret or of an ignition.
	encoded = regexp.MustCompile(`\b(LS0tLS1CRUdJTi|YXBpVmVyc2lvb|eyJhdXRocyI|eyJpZ25pdGlvbiI|eyJhcGlWZXJzaW9uI|eyJraW5kI)[A-Za-z0-9+/_=\\-]*`)
	// dataURL is the content of a file in an ignition.
	dataURL = regexp.MustCompile(`(?i)\bdata:[a-z0-9/;=+.-]*,[^\s"'\\]+`)
	// openShiftToken is a token of OpenShift, bootstrapToken one of kubeadm, passwordHash a hash of crypt(3).
	openShiftToken = regexp.MustCompile(`sha256~[A-Za-z0-9_-]{10,}`)
	bootstrapToken = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)
	passwordHash   = regexp.MustCompile(`\$[0-9][a-z]?\$[A-Za-z0-9./$=,]{8,}`)
	// flag is an option of a command, such as ipmitool -U root -P password.
	flag = regexp.MustCompile(`(\s|^|["'\[,])(-P|--?(?:[a-z-]*password|[a-z-]*token|[a-z-]*secret|api-key))(\s+|["'],\s*["'])[^\s"']+`)
	// userinfo is user and password before a host without a scheme.
	userinfo = regexp.MustCompile(`[A-Za-z0-9_.+-]+:([^\s@/:"']+)@[A-Za-z0-9_.-]+`)
	// line is a line of YAML, field a name with a value in any other text. The value may have (escaped) quotes.
	line  = regexp.MustCompile(`(?im)^(\s*(?:- )?["']?` + secretName + `["']?:[ \t]+)([^\s|>{\["'][^\n]*)$`)
	field = regexp.MustCompile(`(?i)(` + secretName + `(?:\\*["'])?[ \t]*[:=][ \t]*)` +
		`(\\+"(?:[^"\\]|\\[^"])*\\+"|"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s"'&,;(){}\[\]]+)`)
)

// secretName is a name whose value is a credential.
const secretName = `[\w.-]*(?:pass(?:word|wd|phrase)|token|secret|api[_-]?key|(?:private|access|client|encryption)[_-]?key|` +
	`-data|user[_-]?data|kubeconfig|authorization|\bauths?\b|\bpsk\b)[\w.-]*`

// Text removes credentials from a text.
func (r *Redactor) Text(text string) string {
	text = r.known(text)
	text = keyBlock.ReplaceAllString(text, Removed)
	text = encoded.ReplaceAllString(text, Removed)
	text = dataURL.ReplaceAllString(text, "data:"+Removed)
	text = assisted.RedactText(text)
	text = openShiftToken.ReplaceAllString(text, Removed)
	text = bootstrapToken.ReplaceAllString(text, Removed)
	text = passwordHash.ReplaceAllString(text, Removed)
	text = flag.ReplaceAllString(text, "${1}${2}${3}"+Removed)
	text = userinfo.ReplaceAllStringFunc(text, redactUserinfo)
	text = line.ReplaceAllStringFunc(text, func(found string) string { return redactField(line, found) })
	return field.ReplaceAllStringFunc(text, func(found string) string { return redactField(field, found) })
}

// known removes what was learned, the longest value first.
func (r *Redactor) known(text string) string {
	if len(r.learned) == 0 {
		return text
	}
	if r.replacer == nil {
		values := make([]string, 0, len(r.learned))
		for value := range r.learned {
			values = append(values, value)
		}
		slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
		pairs := make([]string, 0, 2*len(values))
		for _, value := range values {
			pairs = append(pairs, value, Removed)
		}
		r.replacer = strings.NewReplacer(pairs...)
	}
	return r.replacer.Replace(text)
}

// redactUserinfo removes user and password, but not the tag of an image: release:4.19@sha256:...
func redactUserinfo(found string) string {
	if strings.HasSuffix(found, "@sha256") || strings.HasSuffix(found, "@sha512") {
		return found
	}
	_, host, _ := strings.Cut(found, "@")
	return Removed + "@" + host
}

// word is a value in a sentence: "cannot read Secret: not found".
var word = regexp.MustCompile(`^[a-z]+$`)

// redactField removes the value of a field. It keeps the value if the field is a reference, such as pullSecretName.
func redactField(pattern *regexp.Regexp, found string) string {
	parts := pattern.FindStringSubmatch(found)
	name, value := strings.Trim(parts[1], " \t\n\r-:=\\\"'"), parts[2]
	if isReference(name) {
		return found
	}
	sentence := strings.HasSuffix(parts[1], " ") && word.MatchString(strings.Fields(value + " ")[0])
	if sentence && strings.HasSuffix(strings.ToLower(name), "secret") {
		return found
	}
	quote := value[:len(value)-len(strings.TrimLeft(value, `\"'`))]
	return parts[1] + quote + Removed + quote
}
