package redact

import (
	"regexp"
	"slices"
	"strings"
)

const (
	// maxName is the length of a name of a field in a text.
	maxName = 256
	// maxPair is the distance of a name from its value: {"name":"PASSWORD","value":"..."}.
	maxPair = 512
	// maxPrefix is the length of what precedes a name at the start of a line.
	maxPrefix = 256
	// maxWord is the length of a word before "key", with its space.
	maxWord = 16
)

// scanner finds the names with values in a text, as in JSON, YAML, logs, headers and environments. Each of "name: value",
// "name=value" and their forms with (escaped) quotes is a field. A pattern cannot match balanced brackets and quotes.
type scanner struct {
	text string
	out  strings.Builder
	// done is the position up to which the text is in out.
	done int
	// line is the start of the line, quoted whether the position is in a quoted string of the line.
	line   int
	quoted bool
	// pairEnd is where a value belongs no longer to the name of a credential.
	pairEnd int
	// valueBefore is a value whose name may follow.
	valueBefore *value
}

// redactFields removes the values of fields that are credentials.
func redactFields(text string) string {
	s := scanner{text: text}
	for i := 0; i < len(text); {
		switch text[i] {
		case '\n':
			s.line, s.quoted = i+1, false
		case '\\':
			if i+1 < len(text) && text[i+1] != '\n' {
				i++ // an escaped quote
			}
		case '"':
			s.quoted = !s.quoted
		case ':', '=':
			i = s.separator(i)
			continue
		}
		i++
	}
	if s.done == 0 {
		return text
	}
	s.out.WriteString(text[s.done:])
	return s.out.String()
}

// field is a name with its separator.
type field struct {
	name   string
	quoted bool
	// start is the position of the name, separator that of ":" or "=", value that behind it.
	start, separator, value int
}

// separator handles the field with the separator at a position. It returns the next position.
func (s *scanner) separator(i int) int {
	f := s.fieldAt(i)
	if f.name == "" {
		return i + 1
	}
	last := plain(f.name[strings.LastIndexAny(f.name, "./-")+1:])
	secret := (isSecret(f.name) || s.isKey(&f)) && !isReference(f.name) && !isPosition(f, s.text)
	switch {
	case secret:
	case slices.Contains(pairNames, last):
		return s.pairName(&f, i)
	case slices.Contains(pairValues, last):
		if secret = i < s.pairEnd; !secret {
			s.valueBefore = s.peek(&f)
		}
	}
	if !secret {
		return i + 1
	}
	v := s.valueOf(&f)
	if end := kept(&f, s.text, v); end > i {
		return end
	}
	if v.start == v.end {
		return max(v.next, i+1)
	}
	s.remove(v)
	return v.next
}

// peek returns a value whose name may follow, or nil for a long value. Its length is bounded, because other fields may be in it.
func (s *scanner) peek(f *field) *value {
	near := scanner{text: s.text[:min(len(s.text), f.value+maxPair)], line: s.line, quoted: s.quoted}
	if v := near.valueOf(f); v.next < len(near.text) {
		return &v
	}
	return nil
}

// remove replaces a value, and continues behind it.
func (s *scanner) remove(v value) {
	s.out.WriteString(s.text[s.done:v.start])
	s.out.WriteString(Removed)
	s.done = v.end
	if newline := strings.LastIndex(s.text[v.start:v.next], "\n"); newline >= 0 {
		s.line, s.quoted = v.start+newline+1, false
	}
}

// Names of fields that name another field, and of the fields with its value.
var (
	pairNames  = []string{"name", "key", "path"}
	pairValues = []string{"value", "default", "example"}
)

// pairName handles a field whose value is a name: the name of a credential makes the fields around it secret.
func (s *scanner) pairName(f *field, i int) int {
	named := strings.TrimLeft(s.text[f.value:min(len(s.text), f.value+maxName)], `\"'`)
	if end := strings.IndexFunc(named, func(r rune) bool { return !isNamePart(r) }); end >= 0 {
		named = named[:end]
	}
	before := s.valueBefore
	s.pairEnd, s.valueBefore = 0, nil
	if !namesSecret(named) {
		return i + 1
	}
	s.pairEnd = i + maxPair
	if before != nil && before.start >= s.done && before.start < before.end && s.follows(before, f.start) {
		s.out.WriteString(s.text[s.done:before.start])
		s.out.WriteString(Removed)
		s.done = before.end
	}
	return i + 1
}

// follows reports whether a name follows a value in the same object: {"value":"...","name":"PASSWORD"}.
func (s *scanner) follows(v *value, start int) bool {
	return v.next <= start && strings.Trim(s.text[v.next:start], " \t\r\n,\\\"'") == ""
}

func isNamePart(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.-/~", r)
}

// fieldAt returns the field with a separator.
func (s *scanner) fieldAt(i int) field {
	lowest := max(s.done, s.line, i-maxName)
	back := func(at int, characters string) int {
		for at > lowest && strings.IndexByte(characters, s.text[at-1]) >= 0 {
			at--
		}
		return at
	}
	end := back(back(i, " \t"), `"'\]`)
	f := field{quoted: strings.ContainsAny(s.text[end:i], `"'`), separator: i, value: i + 1}
	for f.start = end; f.start > lowest && isNamePart(rune(s.text[f.start-1])); {
		f.start--
	}
	if f.start > lowest && s.text[f.start-1] == '\\' && escapedStart.MatchString(s.text[f.start:end]) {
		f.start++ // \n before the name
	}
	if f.name = s.text[f.start:end]; f.name == "" {
		return f
	}
	if f.value < len(s.text) && (s.text[f.value] == '=' || s.text[i] == '=' && s.text[f.value] == '>') {
		f.value++ // := == =>
	}
	for f.value < len(s.text) && (s.text[f.value] == ' ' || s.text[f.value] == '\t') {
		f.value++
	}
	return f
}

// kindOfKey is the word before "key" in the name of a credential.
var kindOfKey = regexp.MustCompile(`(?i)(?:api|access|private|client|encryption|secret|shared) $`)

// isKey reports whether a field is a credential whose name has two words: "API key".
func (s *scanner) isKey(f *field) bool {
	return strings.EqualFold(f.name, "key") && kindOfKey.MatchString(s.text[max(s.line, f.start-maxWord):f.start])
}

// escapedStart is the second character of an escaped line break or tab before a name.
var escapedStart = regexp.MustCompile(`^(?:[nr]|t(?:[^o]|$))`)

// isPosition reports whether a field is a position in a source file: token.go:12.
func isPosition(f field, text string) bool {
	isSource := strings.HasSuffix(f.name, ".go") || strings.HasSuffix(f.name, ".py")
	return isSource && f.value < len(text) && text[f.value] >= '0' && text[f.value] <= '9'
}

var (
	// objectName is the name of an object, as klog writes it.
	objectName = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?[.,;:]?$`)
	// objectKeys is the name of an object, as structured logs write it.
	objectKeys = regexp.MustCompile(`^\{(?:\s*\\*"(?:name|namespace)\\*"\s*:\s*\\*"[A-Za-z0-9.-]*\\*"\s*,?\s*)+\}$`)
	// sentence is the rest of a sentence: "cannot read Secret: not found".
	sentence = regexp.MustCompile(`^(?:[a-z]+|Secret) `)
	// inSentence is a word before a name.
	inSentence = regexp.MustCompile(`[a-z]{2} $`)
)

// Names of objects, which logs use in sentences and as names of references. They are no names of fields with a credential.
var objectNames = []string{"secret", "secrets", "userdata", "kubeconfig", "ignition", "credential", "credentials"}

// kept returns the end of a value that is no credential, and 0 for a credential.
func kept(f *field, text string, v value) int {
	name, found := plain(f.name), text[v.start:v.end]
	if !slices.Contains(objectNames, name) && !strings.HasSuffix(name, "secret") {
		return 0
	}
	if objectKeys.MatchString(found) {
		return v.end
	}
	token, _, _ := strings.Cut(found, " ")
	if (name == "secret" || name == "secrets") && objectName.MatchString(token) {
		return v.start + len(token)
	}
	before := text[max(0, f.start-3):f.start]
	isSentence := f.separator+1 < f.value && !f.quoted && sentence.MatchString(text[f.value:min(len(text), f.value+maxPrefix)])
	isDocument := name == "ignition" || name == "kubeconfig" // no document starts with a word
	if slices.Contains(objectNames, name) && isSentence && (isDocument || inSentence.MatchString(before)) {
		return f.value
	}
	return 0
}
