package redact

import (
	"regexp"
	"slices"
	"strings"
)

// maxBrackets is the length of a value in brackets. A longer value is removed up to the end of its line.
const maxBrackets = 4 << 10

// value is where a value is in a text, without its quotes. next is the position behind its quotes.
type value struct{ start, end, next int }

// valueOf returns the value of a field.
func (s *scanner) valueOf(f *field) value {
	at := f.value
	if at+1 < len(s.text) && strings.IndexByte("bBuUrR", s.text[at]) >= 0 && strings.IndexByte(`"'`, s.text[at+1]) >= 0 {
		at++ // a prefix of Python
	}
	if v, isQuoted := quotedValue(s.text, at); isQuoted {
		return s.concatenated(f, v)
	}
	starts, rest := s.startsLine(f), s.text[at:min(len(s.text), at+maxPrefix)]
	if starts && (blockStart.MatchString(rest) || lineBreak.MatchString(rest) && !s.hasFields(at)) {
		return s.block(f)
	}
	if at < len(s.text) && (s.text[at] == '[' || s.text[at] == '{') {
		return s.brackets(f, at)
	}
	v := value{start: at, end: s.unquotedEnd(f, at, starts)}
	v.next = v.end
	return v
}

// quotedValue returns a value with quotes, which may be escaped. If the end is cut off, it returns the rest of the text.
func quotedValue(text string, at int) (value, bool) {
	level := 0
	for at+level < len(text) && text[at+level] == '\\' {
		level++
	}
	if at+level >= len(text) || text[at+level] != '"' && text[at+level] != '\'' {
		return value{}, false
	}
	quote, start := text[at+level], at+level+1
	escapes := 0
	for i := start; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			escapes++
			continue
		case text[i] != quote || !closes(escapes, level):
		case quote == '\'' && level == 0 && i+1 < len(text) && text[i+1] == quote: // a doubled quote of YAML
			i++
		default:
			end := i - min(escapes, level)
			return value{start, end, i + 1}, true
		}
		escapes = 0
	}
	return value{start, len(text), len(text)}, true
}

// closes reports whether a quote behind backslashes ends a string that began with a quote behind level backslashes. Each
// level of strings in strings escapes the backslashes of the inner one.
func closes(escapes, level int) bool {
	for ; level > 0; level /= 2 {
		if escapes%2 == 0 {
			return true // the end of the outer string
		}
		escapes /= 2
	}
	return escapes%2 == 0
}

// concatenated adds what a shell joins to a quoted value of an environment: 'it'"'"'s'.
func (s *scanner) concatenated(f *field, v value) value {
	if f.quoted || s.text[f.separator] != '=' || s.quoted {
		return v
	}
	for v.next < len(s.text) && strings.IndexByte(" \t\r\n,;)}]&|\\", s.text[v.next]) < 0 {
		if further, isQuoted := quotedValue(s.text, v.next); isQuoted {
			v.end, v.next = further.end, further.next
			continue
		}
		v.next++
		v.end = v.next
	}
	return v
}

// brackets returns a list or an object, up to the end of the line if the brackets do not close.
func (s *scanner) brackets(f *field, at int) value {
	depth, limit := 0, min(len(s.text), at+maxBrackets)
	for i := at; i < limit; i++ {
		switch s.text[i] {
		case '"':
			v, _ := quotedValue(s.text[:limit], i)
			i = v.next - 1
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth > 0 {
				continue
			}
			end := i + 1
			for !f.quoted && end < len(s.text) && strings.IndexByte(" \t\r\n,;\"'&)}]\\", s.text[end]) < 0 {
				end++
			}
			return value{at, end, end}
		}
	}
	end := s.lineEnd(at)
	return value{at, end, end}
}

// lineEnd returns the end of the line of a position. In a string, it is an escaped line break or the end of the string.
func (s *scanner) lineEnd(at int) int {
	for i := at; i < len(s.text); i++ {
		switch {
		case s.text[i] == '\n', s.quoted && s.text[i] == '"':
			return i
		case s.text[i] != '\\' || i+1 == len(s.text):
		case s.text[i+1] == 'n' && s.isEscaped(at):
			return i
		default:
			i++
		}
	}
	return len(s.text)
}

// isEscaped reports whether a position is in a string with escaped line breaks.
func (s *scanner) isEscaped(at int) bool {
	return s.quoted || strings.Contains(s.text[max(s.line, at-maxPrefix):at], `\n`)
}

// unquotedEnd returns the end of a value without quotes.
func (s *scanner) unquotedEnd(f *field, at int, starts bool) int {
	name, text := plain(f.name), s.text
	ends := func(characters string) int {
		if s.quoted {
			characters += `"`
		}
		if end := strings.IndexAny(text[at:], characters); end >= 0 {
			return at + end
		}
		return len(text)
	}
	switch {
	case slices.Contains([]string{"cookie", "setcookie", "authorization", "proxyauthorization"}, name):
		if quote := s.text[max(0, f.start-1)]; quote == '\'' || quote == '"' {
			return ends(string(quote) + "\n")
		}
		return ends("\n")
	case f.quoted:
		return ends(" \t\r\n\"'&,;(){}[]\\")
	case f.name == "Value" && text[f.separator] == ':': // an environment variable that Go has printed
		end := ends("}\n")
		if before, _, found := strings.Cut(text[at:end], " ValueFrom:"); found {
			return at + len(before)
		}
		return end
	case starts:
		return s.lineEnd(at)
	case f.start > 0 && (text[f.start-1] == '?' || text[f.start-1] == '&'): // a query
		return ends(" \t\r\n&\"'<>")
	}
	return ends(" \t\r\n")
}

// Starts of lines before a name of YAML: the times of the kubelet, of a journal and of klog.
var (
	linePrefix = regexp.MustCompile(`^(?:\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-][\d:]+)?)?(?: (?:stdout|stderr) [FP] )?` +
		`(?:\s*[A-Z][a-z]{2} [ \d]\d [\d:.]+ \S+ [^\s:]+: ?)?(?:\s*[IWEF]\d{4} [\d:.]+\s+\d+ [^\s\]]+\] ?)?`)
	indentation = regexp.MustCompile(`^\s*(?:- )*["'\\]*$`)
	lineBreak   = regexp.MustCompile(`^(?:\r?\n|\\n)`)
	entry       = regexp.MustCompile(`^\s*(?:- )?["']?[\w./-]+["']?:(?:\s|$)`)
	blockStart  = regexp.MustCompile(`^[|>][+-]?\d?[+-]?[ \t]*(?:#[^\n]*)?(?:\r?\n|\\n)`)
)

// lineStart returns what precedes a name in its line of YAML, without the time of a log. The line may be in a string.
func (s *scanner) lineStart(f *field) string {
	before := s.text[max(s.line, f.start-maxPrefix):f.start]
	if at := strings.LastIndex(before, `\n`); at >= 0 {
		return before[at+2:]
	}
	if at := strings.LastIndexByte(before, '"'); at >= 0 && s.quoted {
		return before[at+1:]
	}
	if f.start-s.line > maxPrefix {
		return before
	}
	return before[len(linePrefix.FindString(before)):]
}

// startsLine reports whether a field is a line of YAML: its value then ends with the line.
func (s *scanner) startsLine(f *field) bool {
	if f.value == f.separator+1 && !lineBreak.MatchString(s.text[f.value:min(len(s.text), f.value+2)]) {
		return false
	}
	return s.text[f.separator] == ':' && indentation.MatchString(s.lineStart(f))
}

// hasFields reports whether the line after a name is a field: the value is an object, whose fields are handled alone.
func (s *scanner) hasFields(at int) bool {
	start := at + len(lineBreak.FindString(s.text[at:min(len(s.text), at+2)]))
	next := s.text[start:min(s.lineEnd(start), start+maxName)]
	return entry.MatchString(next[len(linePrefix.FindString(next)):])
}

// block returns a block of YAML: all following lines with more indentation than the name, or items of a list.
func (s *scanner) block(f *field) value {
	before := s.lineStart(f)
	end := s.lineEnd(f.value)
	for end < len(s.text) && s.text[end] != '"' {
		start := end + 1
		if s.text[end] == '\\' {
			start = end + 2
		}
		stop := s.lineEnd(start)
		content := strings.TrimRight(s.text[start:stop], "\r")
		content = content[len(linePrefix.FindString(content)):]
		text := strings.TrimLeft(content, " \t")
		indent := len(content) - len(text)
		if text != "" && indent <= len(before) && !(indent == len(before) && strings.HasPrefix(text, "- ")) {
			break
		}
		end = stop
	}
	return value{f.value, end, end}
}
