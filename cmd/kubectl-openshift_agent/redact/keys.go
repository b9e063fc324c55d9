package redact

import (
	"regexp"
	"strings"
)

var (
	// keyBlock is a private key, up to the end of the text if its end was cut off. Line breaks may be escaped.
	keyBlock = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|\z)`)
	// keyEnd is the rest of a private key whose start was cut off. Each line of a log may start with its time.
	keyEnd = regexp.MustCompile(
		`(?:(?:[A-Za-z0-9+/=]|\d{4}-\d\d-\d\dT[\d:.]+)*(?:\\+[rn]|\s)+)*-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----`)
	// breaks are line breaks, which may be escaped.
	breaks = regexp.MustCompile(`\r?\n|(?:\\+r)?\\+n`)
	// timeOfLine is the time at the start of a line of a log.
	timeOfLine = regexp.MustCompile(`^\d{4}-\d\d-\d\dT[\d:.]+Z? `)
)

// minKeyLine is the length of a line of PEM. OpenSSH writes longer ones, and the last line may be shorter.
const minKeyLine = 64

// redactKeys removes private keys.
func redactKeys(text string) string {
	if strings.Contains(text, "PRIVATE KEY") {
		text = keyBlock.ReplaceAllString(text, Removed)
	}
	if strings.Contains(text, "PRIVATE KEY") {
		text = keyEnd.ReplaceAllString(text, Removed)
	}
	if !hasKeyLine(text) {
		return text
	}
	k := keyLines{text: text}
	k.split()
	return k.redact()
}

// hasKeyLine reports whether a text may contain a line of a key, much faster than a pattern.
func hasKeyLine(text string) bool {
	length, hash := 0, true
	for i := range len(text) {
		if !isBase64(text[i]) {
			length, hash = 0, true
			continue
		}
		length++
		hash = hash && isHexadecimal(text[i])
		if length >= minKeyLine && !hash {
			return true
		}
	}
	return false
}

// keyLines removes the lines of a private key that was cut off at both ends. Only the lines show what they are.
type keyLines struct {
	text  string
	lines []keyLine
}

// keyLine is a line of a text. Its content is without the time of a log, indentation and quotes; next is behind its line break.
type keyLine struct {
	start, end, next int
	content          string
	secret           bool
}

func (k *keyLines) split() {
	start := 0
	add := func(end, next int) {
		content := k.text[start:end]
		content = strings.Trim(content[len(timeOfLine.FindString(content)):], " \t\"'")
		k.lines = append(k.lines, keyLine{start: start, end: end, next: next, content: content})
		start = next
	}
	for _, found := range breaks.FindAllStringIndex(k.text, -1) {
		add(found[0], found[1])
	}
	add(len(k.text), len(k.text))
}

func (k *keyLines) redact() string {
	public := false
	for i := range k.lines {
		content := k.lines[i].content
		switch {
		case strings.Contains(content, "-----BEGIN "): // that of a private key is removed
			public = true
		case strings.Contains(content, "-----END "):
			public = false
		case !public && isKeyLine(content):
			k.lines[i].secret = true
			if i > 0 && isRest(k.lines[i-1].content) {
				k.lines[i-1].secret = true
			}
			if i+1 < len(k.lines) && isRest(k.lines[i+1].content) {
				k.lines[i+1].secret = true
			}
		}
	}
	var out strings.Builder
	for i, line := range k.lines {
		switch {
		case !line.secret:
			out.WriteString(k.text[line.start:line.next])
		case i+1 == len(k.lines) || !k.lines[i+1].secret: // the last one
			out.WriteString(Removed + k.text[line.end:line.next])
		}
	}
	return out.String()
}

// isKeyLine reports whether a line is a whole line of a key. A SHA-256 has the same length.
func isKeyLine(line string) bool {
	if length := len(line); length != minKeyLine && length != 70 && length != 76 {
		return false
	}
	return hasKeyLine(line)
}

// isRest reports whether a line may be the rest of a line of a key, and is no word.
func isRest(line string) bool {
	digits := strings.TrimRight(line, "=")
	if digits == "" || len(line) > 76 {
		return false
	}
	for i := range len(digits) {
		if !isBase64(digits[i]) {
			return false
		}
	}
	isUpper := func(r rune) bool { return r >= 'A' && r <= 'Z' }
	return digits != line || strings.ContainsAny(line, "0123456789+/") || strings.IndexFunc(line[1:], isUpper) >= 0
}

func isBase64(c byte) bool {
	return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/'
}

func isHexadecimal(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }
