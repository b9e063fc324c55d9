package hosts

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var environmentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ParseEnvironmentFile reads an environment file as systemd's EnvironmentFile= does (systemd 254, env-file.c).
// It supports single and double quotes, backslash escapes, and comments that start with # or ;. It expands
// nothing. Lines without "=", invalid names of variables and values that are not UTF-8 are dropped, as systemd
// drops them.
func ParseEnvironmentFile(text string) map[string]string {
	p := environmentParser{variables: map[string]string{}, state: (*environmentParser).beforeName}
	for i := range len(text) {
		p.state = p.state(&p, text[i])
	}
	p.assign()
	return p.variables
}

// environmentParser is a state machine over the bytes of an environment file.
type environmentParser struct {
	variables   map[string]string
	state       environmentState
	name, value strings.Builder
	// trailing counts the unquoted white space at the end of the value, which is not part of the value.
	trailing int
	assigned bool
}

type environmentState func(p *environmentParser, c byte) environmentState

// assign ends a line and stores its variable.
func (p *environmentParser) assign() {
	name, value := strings.TrimRight(p.name.String(), " \t"), p.value.String()
	value = value[:len(value)-p.trailing]
	if p.assigned && environmentName.MatchString(name) && utf8.ValidString(value) {
		p.variables[name] = value
	}
	p.name.Reset()
	p.value.Reset()
	p.trailing, p.assigned = 0, false
}

func (p *environmentParser) beforeName(c byte) environmentState {
	switch c {
	case '#', ';':
		return (*environmentParser).comment
	case ' ', '\t', '\n', '\r':
		return (*environmentParser).beforeName
	}
	p.name.WriteByte(c)
	return (*environmentParser).inName
}

func (p *environmentParser) inName(c byte) environmentState {
	switch c {
	case '\n', '\r':
		p.assign()
		return (*environmentParser).beforeName
	case '=':
		p.assigned = true
		return (*environmentParser).beforeValue
	}
	p.name.WriteByte(c)
	return (*environmentParser).inName
}

func (p *environmentParser) beforeValue(c byte) environmentState {
	switch c {
	case '\n', '\r':
		p.assign()
		return (*environmentParser).beforeName
	case '\'':
		return (*environmentParser).singleQuoted
	case '"':
		return (*environmentParser).doubleQuoted
	case '\\':
		return (*environmentParser).escaped
	case ' ', '\t':
		return (*environmentParser).beforeValue
	}
	p.value.WriteByte(c)
	return (*environmentParser).inValue
}

func (p *environmentParser) inValue(c byte) environmentState {
	switch c {
	case '\n', '\r':
		p.assign()
		return (*environmentParser).beforeName
	case '\\':
		p.trailing = 0
		return (*environmentParser).escaped
	case ' ', '\t':
		p.trailing++
	default:
		p.trailing = 0
	}
	p.value.WriteByte(c)
	return (*environmentParser).inValue
}

func (p *environmentParser) escaped(c byte) environmentState {
	if c != '\n' && c != '\r' {
		p.value.WriteByte(c)
	}
	return (*environmentParser).inValue
}

func (p *environmentParser) singleQuoted(c byte) environmentState {
	if c == '\'' {
		return (*environmentParser).beforeValue
	}
	p.value.WriteByte(c)
	return (*environmentParser).singleQuoted
}

func (p *environmentParser) doubleQuoted(c byte) environmentState {
	switch c {
	case '"':
		return (*environmentParser).beforeValue
	case '\\':
		return (*environmentParser).doubleQuotedEscape
	}
	p.value.WriteByte(c)
	return (*environmentParser).doubleQuoted
}

func (p *environmentParser) doubleQuotedEscape(c byte) environmentState {
	switch c {
	case '"', '\\', '`', '$':
		p.value.WriteByte(c)
	case '\n':
	default:
		p.value.WriteByte('\\')
		p.value.WriteByte(c)
	}
	return (*environmentParser).doubleQuoted
}

func (p *environmentParser) comment(c byte) environmentState {
	if c == '\n' || c == '\r' {
		return (*environmentParser).beforeName
	}
	return (*environmentParser).comment
}
