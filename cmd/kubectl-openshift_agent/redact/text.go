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
	learned map[string]struct{}
	// replacers replace the learned values before and after all patterns. They are nil after a new value.
	replacers []*strings.Replacer
}

// New returns a Redactor that has learned nothing.
func New() *Redactor { return &Redactor{learned: map[string]struct{}{}} }

// learn adds a credential.
func (r *Redactor) learn(value string) {
	if len(value) >= minLearned && !strings.Contains(Removed, value) {
		r.learned[value] = struct{}{}
		r.replacers = nil
	}
}

// Patterns of credentials in a text. pkg/assisted has those of URLs and tokens, and fields.go finds names with values.
var (
	// encoded is the base64 of PEM, of a kubeconfig ("apiVersion:" or "{"), of a pull secret, of an ignition or of gzip.
	encoded = regexp.MustCompile(
		`\b(LS0tLS1CRUdJTi|YXBpVmVyc2lvb|eyJhdXRocyI|eyJpZ25pdGlvbiI|eyJhcGlWZXJzaW9uI|eyJraW5kI|H4sI)[A-Za-z0-9+/_=\\-]*`)
	// dataURL is the content of a file in an ignition.
	dataURL = regexp.MustCompile(`(?i)\bdata:[a-z0-9/;=+.-]*,[^\s"'\\]+`)
	// openShiftToken is a token of OpenShift, bootstrapToken one of kubeadm, passwordHash a hash of crypt(3).
	openShiftToken = regexp.MustCompile(`sha256~[A-Za-z0-9_-]{10,}`)
	bootstrapToken = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)
	passwordHash   = regexp.MustCompile(`\$(?:[0-9][a-z]?|g?y|sm3|md5|sha1|apr1|argon2[a-z]*|scrypt|pbkdf2[a-z0-9-]*)\$[A-Za-z0-9./$=,+-]{8,}`)
	// userinfo is user and password before a host without a scheme. The parameter netroot has two of both.
	userinfo = regexp.MustCompile(`[A-Za-z0-9_.+-]+(?::[^\s@/:"']+)+@[A-Za-z0-9_.-]+`)
	// element is an element of XML with a text.
	element = regexp.MustCompile(`<([\w.:-]+)(\s[^<>]*)?>([^<]+)</`)
	// input is the input of a command that reads passwords, such as chpasswd.
	input = regexp.MustCompile(`\b(echo|printf)\b[^|\n]*(\|[^|\n]*(?:\bchpasswd|-stdin)\b)|((?:\bchpasswd|-stdin)\b[^<\n]*<<<?)[^\n]+`)
	// joined is user and password behind the option of curl without a space.
	joined = regexp.MustCompile(`(\s-[a-zA-Z]*[uU])[^\s:"']+:[^\s"']+`)
	// goBytes is the content of a Secret that Go has printed.
	goBytes = regexp.MustCompile(`\[\](?:uint8|byte)(?:\{[^}\n]*\}|\([^)\n]*\))`)
)

// rule removes a kind of credential from a line.
type rule struct {
	// triggers are parts of each line with such a credential, in lower case. They are much faster to find than the pattern.
	triggers []string
	apply    func(line string) string
}

// rules returns the rules in their order.
var rules = []rule{
	{[]string{"ls0tls1crudjti", "yxbpvmvyc2lvb", "eyj", "h4si"}, replace(encoded, Removed)},
	{[]string{"data:"}, replace(dataURL, "data:"+Removed)},
	{[]string{"//", `\/\/`, "%2f", "bearer ", "basic ", "eyj"}, assisted.RedactText},
	{[]string{"sha256~"}, replace(openShiftToken, Removed)},
	{[]string{"."}, func(line string) string {
		if !mayHaveBootstrapToken(line) {
			return line
		}
		return bootstrapToken.ReplaceAllStringFunc(line, redactBootstrapToken)
	}},
	{[]string{"$"}, replace(passwordHash, Removed)},
	{[]string{"chpasswd", "-stdin"}, replace(input, "${1}${3} "+Removed+" ${2}")},
	{[]string{"curl"}, replace(joined, "${1}"+Removed)},
	{[]string{"htpasswd"}, redactHtpasswd},
	{[]string{" is", " was", " are", " were", " to", "with", "using"}, redactStated},
	{[]string{"[]byte", "[]uint8"}, replace(goBytes, Removed)},
	{[]string{"-"}, redactFlags},
	{[]string{"@"}, func(line string) string { return userinfo.ReplaceAllStringFunc(line, redactUserinfo) }},
	{[]string{"</"}, func(line string) string { return element.ReplaceAllStringFunc(line, redactElement) }},
}

func replace(pattern *regexp.Regexp, with string) func(string) string {
	return func(line string) string { return pattern.ReplaceAllString(line, with) }
}

// Text removes credentials from a text.
func (r *Redactor) Text(text string) string {
	return r.known(patterns(r.known(text, false)), true)
}

// patterns removes all credentials that are recognized without learned values.
func patterns(text string) string {
	if strings.Contains(text, `\u00`) {
		text = unescape(text)
	}
	text = redactKeys(text)
	var out strings.Builder
	out.Grow(len(text))
	flagBefore := false
	for line := range strings.SplitAfterSeq(text, "\n") {
		if flagBefore {
			line = redactItem(line)
		}
		flagBefore = endsWithFlag(line)
		lower := strings.ToLower(line)
		for _, rule := range rules {
			if slices.ContainsFunc(rule.triggers, func(trigger string) bool { return strings.Contains(lower, trigger) }) {
				line = rule.apply(line)
			}
		}
		out.WriteString(line)
	}
	return redactFields(out.String())
}

// known removes what was learned, the longest value first. A value that may be a name of a field, or a part of a name, is
// removed last: the patterns need the names.
func (r *Redactor) known(text string, last bool) string {
	if len(r.learned) == 0 {
		return text
	}
	if r.replacers == nil {
		values := make([]string, 0, len(r.learned))
		for value := range r.learned {
			values = append(values, value)
		}
		slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
		var first, all []string
		for _, value := range values {
			all = append(all, value, Removed)
			if !word.MatchString(value) && !mentions(value) {
				first = append(first, value, Removed)
			}
		}
		r.replacers = []*strings.Replacer{strings.NewReplacer(first...), strings.NewReplacer(all...)}
	}
	if last {
		return r.replacers[1].Replace(text)
	}
	return r.replacers[0].Replace(text)
}

// word is a learned value that may be a name.
var word = regexp.MustCompile(`^[A-Za-z_.-]+$`)

// mayHaveBootstrapToken reports whether a line may contain a token of kubeadm, much faster than the pattern.
func mayHaveBootstrapToken(line string) bool {
	const before, after = 6, 16
	for at := before; at+after < len(line); at++ {
		if line[at] == '.' && isLowerOrDigit(line[at-before:at]) && isLowerOrDigit(line[at+1:at+1+after]) {
			return true
		}
	}
	return false
}

func isLowerOrDigit(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// redactBootstrapToken keeps a name of DNS. 16 characters of a token contain a digit, except for one in 190 tokens.
func redactBootstrapToken(found string) string {
	if _, secret, _ := strings.Cut(found, "."); !strings.ContainsAny(secret, "0123456789") {
		return found
	}
	return Removed
}

// redactUserinfo removes user and password, but not the tag of an image: release:4.19@sha256:...
func redactUserinfo(found string) string {
	if strings.HasSuffix(found, "@sha256") || strings.HasSuffix(found, "@sha512") {
		return found
	}
	return Removed + found[strings.LastIndex(found, "@"):]
}

// redactElement removes the text of an element of XML.
func redactElement(found string) string {
	parts := element.FindStringSubmatch(found)
	name := parts[1][strings.LastIndex(parts[1], ":")+1:]
	if !isSecret(name) || isReference(name) {
		return found
	}
	return "<" + parts[1] + parts[2] + ">" + Removed + "</"
}
