package redact

import (
	"regexp"
	"strings"
)

// credentialNames are the names of credentials that a value may follow without a verb.
const credentialNames = `password|passphrase|passcode|passwd|pwd|token`

var (
	// stated is a credential in a sentence: "the password of root is X", "with password X".
	stated = regexp.MustCompile(`(?i)\b((?:` + credentialNames + `|secret|api[ _-]?key)s?` +
		`(?:\s+(?:of|for|on|at)\s+(?:the\s+|user\s+|host\s+)?[^\s:]+){0,2}` +
		`\s+(?:(?:has\s+been\s+|is\s+|was\s+)?(?:set|changed|reset)\s+to|is|was|are|were)(?:\s+now)?:?` +
		`|\b(?:with|using)\s+(?:the\s+)?(?:` + credentialNames + `))` +
		"(\\s+[\"'`\\\\]*)([^\\s\"'`]+)")
	// innocent are words of sentences about credentials that are no credentials.
	innocent = regexp.MustCompile(`(?i)^(?:\[redacted\]|a|an|the|this|that|its|their|your|not|no|in|of|on|for|from|to|with|too|only|never|` +
		`already|still|being|and|or|as|at|by|used|unused|set|unset|valid|invalid|required|needed|missing|empty|blank|absent|wrong|correct|` +
		`incorrect|rejected|accepted|denied|refused|expired|expiring|revoked|rotated|renewed|created|deleted|removed|found|configured|` +
		`unknown|known|supported|unsupported|optional|mandatory|ignored|stored|read|readable|written|available|unavailable|longer|shorter|` +
		`default|disabled|enabled|encrypted|encoded|generated|given|malformed|mounted|nil|null|none|outdated|passed|present|provided|` +
		`returned|stale|true|false|undefined|unauthorized|forbidden|authentication|unchanged|changed|updated|visible|weak|redacted|bound|` +
		`about|authorized|acceptable|complete|incomplete|checked|cached|reset|sent|must|may|can|will|also|now|both)[.,;:!?)]*$`)
	// htpasswd is a command whose option -b makes its last argument a password. It may be a list of arguments.
	htpasswd = regexp.MustCompile(`\bhtpasswd(?:[\s"',\\]+-[A-Za-z0-9]+)*?[\s"',\\]+-[A-Za-z]*b[A-Za-z]*\b`)
	// commandEnd is the end of a command of a shell, or of a list of arguments.
	commandEnd = regexp.MustCompile("[\\n|;&)\\]`>]")
	// escaped is a printable character of JSON in its long form.
	escapedCharacter = regexp.MustCompile(`\\u00[2-7][0-9A-Fa-f]`)
)

// redactStated removes the credentials of sentences. A word about the state of a credential is kept.
func redactStated(line string) string {
	return stated.ReplaceAllStringFunc(line, func(found string) string {
		parts := stated.FindStringSubmatch(found)
		if innocent.MatchString(parts[3]) {
			return found
		}
		return parts[1] + parts[2] + Removed
	})
}

// redactHtpasswd removes the arguments of htpasswd -b: the file, the user and the password.
func redactHtpasswd(line string) string {
	var out strings.Builder
	for {
		found := htpasswd.FindStringIndex(line)
		if found == nil {
			return out.String() + line
		}
		end := len(line)
		if at := commandEnd.FindStringIndex(line[found[1]:]); at != nil {
			end = found[1] + at[0]
		}
		out.WriteString(line[:found[1]])
		arguments := line[found[1]:end]
		if first := strings.TrimLeft(arguments, " \t\"',"); first != "" && !strings.HasPrefix(first, "[redacted") {
			arguments = " " + Removed + arguments[len(strings.TrimRight(arguments, " \t")):]
		}
		out.WriteString(arguments)
		line = line[end:]
	}
}

// unescape replaces the long forms of printable characters in JSON, as \u0022 of a quote. A text that was escaped several
// times keeps its other backslashes.
func unescape(text string) string {
	return escapedCharacter.ReplaceAllStringFunc(text, func(found string) string {
		character := hexadecimal(found[4])<<4 | hexadecimal(found[5])
		switch character {
		case '"':
			return `\"`
		case '\\', 0x7f:
			return found
		}
		return string(rune(character))
	})
}

func hexadecimal(digit byte) byte {
	if digit <= '9' {
		return digit - '0'
	}
	return digit&^0x20 - 'A' + 10
}
