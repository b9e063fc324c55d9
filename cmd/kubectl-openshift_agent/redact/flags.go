package redact

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// flag is the name of an option, such as -P of ipmitool, up to its value. Lists of arguments have quotes and commas.
	flag = regexp.MustCompile(`(?:^|[\s"'\[,(=])(--?[A-Za-z][\w-]*)(\\*["'],\s*|=|\s+)`)
	// lastFlag is an option at the end of a line. The next line contains its value.
	lastFlag = regexp.MustCompile(`(?:^|[\s"'\[,])(--?[A-Za-z][\w-]*)\\*["']?,?\s*\\?\s*$`)
	// item is the first value of a line: an item of a list, or an argument. The line may start with its time.
	item = regexp.MustCompile(`^(\s*(?:\d{4}-\d\d-\d\dT\S+\s+)?(?:- )?)(.*\S)(\s*)$`)
	// login is a command whose option -p is a password. The same option of mkdir is none.
	login = regexp.MustCompile(`\b(?:login|sshpass|racadm|usermod|useradd)\b`)
)

// maxCommand is the length of a command before an option.
const maxCommand = 256

// userFlags are options whose value is user:password.
var userFlags = []string{"-u", "-U", "--user", "--proxy-user"}

// isSecretFlag reports whether the value of an option is a credential. before is the text before the option.
func isSecretFlag(name, before string) bool {
	switch name {
	case "-P":
		return true
	case "-p":
		return login.MatchString(before[max(0, len(before)-maxCommand):])
	}
	return isSecret(name) && !isReference(name)
}

// redactFlags removes the values of options from a line.
func redactFlags(line string) string {
	if !hasFlag(line) {
		return line
	}
	var out strings.Builder
	done := 0
	logins := loginsIn(line)
	for at := 0; at < len(line); {
		found := flag.FindStringSubmatchIndex(line[at:])
		if found == nil {
			break
		}
		name, start := line[at+found[2]:at+found[3]], at+found[1]
		isUser := slices.Contains(userFlags, name)
		secret := logins.precede(at+found[2]) && name == "-p" || name != "-p" && isSecretFlag(name, "")
		at += found[3]
		if !secret && !isUser || strings.HasPrefix(line[start:], "-") {
			continue
		}
		v := argument(line, start)
		if isUser && !strings.Contains(line[v.start:v.end], ":") || v.start == v.end {
			continue
		}
		out.WriteString(line[done:v.start])
		out.WriteString(Removed)
		done, at = v.end, v.end
	}
	return out.String() + line[done:]
}

// commands are the positions of commands in a line.
type commands struct{ found [][]int }

// loginsIn returns the commands of a line whose option -p is a password.
func loginsIn(line string) *commands {
	if !strings.Contains(line, "-p") {
		return &commands{}
	}
	return &commands{found: login.FindAllStringIndex(line, -1)}
}

// precede reports whether one of the commands precedes an option. The options must be in their order: a search for each of
// many options would take long.
func (c *commands) precede(at int) bool {
	for len(c.found) > 1 && c.found[1][1] <= at {
		c.found = c.found[1:]
	}
	return len(c.found) > 0 && c.found[0][1] <= at && at-c.found[0][0] <= maxCommand
}

// hasFlag reports whether a line may have an option, much faster than the pattern.
func hasFlag(line string) bool {
	for i := 0; i+1 < len(line); i++ {
		if line[i] == '-' && (i == 0 || strings.IndexByte(" \t\"'[,(=", line[i-1]) >= 0) && !(line[i+1] >= '0' && line[i+1] <= '9') {
			return true
		}
	}
	return false
}

// argument returns the argument that starts at a position of a line.
func argument(line string, start int) value {
	if v, isQuoted := quotedValue(line, start); isQuoted {
		return v
	}
	end := start
	for end < len(line) && !strings.ContainsRune(" \t\r\n\"'", rune(line[end])) {
		end++
	}
	return value{start: start, end: end, next: end}
}

// endsWithFlag reports whether the next line contains the value of an option.
func endsWithFlag(line string) bool {
	line = line[max(0, len(line)-maxCommand):]
	if !hasFlag(line) {
		return false
	}
	found := lastFlag.FindStringSubmatchIndex(line)
	return found != nil && isSecretFlag(line[found[2]:found[3]], line[:found[2]])
}

// redactItem removes the value from a line that follows an option.
func redactItem(line string) string {
	parts := item.FindStringSubmatch(line)
	if parts == nil || strings.HasPrefix(parts[2], "-") {
		return line
	}
	return parts[1] + Removed + parts[3]
}
