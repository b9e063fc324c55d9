package bound

import (
	"errors"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// The limits of a TOML document from outside. A registries.conf has three levels and at most one dot in a key. Memory and
// time of the decoder grow with the square of the nesting: a dotted key of 40 KB takes 8 GiB.
const (
	// tomlBytes is the largest document. A [[registry]] with a mirror has about 150 bytes.
	tomlBytes = 128 << 10
	// tomlOpen is how many brackets and braces may be open at once.
	tomlOpen = 16
	// tomlDots is how many dots the keys of a statement may have together.
	tomlDots = 16
)

var errTOMLQuotes = errors.New("a multi-line string ends with more than 5 quotation marks")

// UnmarshalTOML decodes a TOML document from outside. It returns an error without decoding if the document is too large or
// nested too deeply.
func UnmarshalTOML(text string, into any) error {
	if err := checkTOML(text); err != nil {
		return err
	}
	return toml.Unmarshal([]byte(text), into)
}

// checkTOML returns an error if decoding a document could take too much memory. It takes linear time, and accepts the
// syntax errors that the decoder reports: the decoder stops at the first one.
func checkTOML(text string) error {
	if len(text) > tomlBytes {
		return fmt.Errorf("it has %d KiB (maximum %d KiB)", len(text)>>10, tomlBytes>>10)
	}
	open, dots := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"', '\'':
			length, err := tomlString(text[i:])
			if err != nil {
				return err
			}
			i += length - 1
		case '#':
			if end := strings.IndexAny(text[i:], "\r\n"); end > 0 {
				i += end - 1
			} else {
				i = len(text)
			}
		case '[', '{':
			open++
		case ']', '}':
			open--
		case '.':
			dots++
		case '\r', '\n':
			if open <= 0 { // the statement ends
				dots = 0
			}
		}
		if open > tomlOpen || dots > tomlDots {
			return fmt.Errorf("line %d is nested too deeply (maximum %d open brackets, %d dots in keys)",
				strings.Count(text[:min(i, len(text))], "\n")+1, tomlOpen, tomlDots)
		}
	}
	return nil
}

// tomlString returns the length of the string at the start of a text. A string that does not end has the length of the
// text: the decoder rejects it.
func tomlString(text string) (int, error) {
	quote := text[:1]
	if strings.HasPrefix(text, strings.Repeat(quote, 3)) {
		return tomlMultilineString(text, quote[0])
	}
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote[0]:
			return i + 1, nil
		case c == '\\' && quote == `"`:
			i++
		case c == '\r', c == '\n':
			return len(text), nil
		}
	}
	return len(text), nil
}

// tomlMultilineString returns the length of the multi-line string at the start of a text. The last three of up to five
// quotation marks end the string.
func tomlMultilineString(text string, quote byte) (int, error) {
	marks := 0
	for i := 3; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			marks++
			continue
		case marks >= 3:
			return i, tomlQuotes(marks)
		case c == '\\' && quote == '"':
			i++
		}
		marks = 0
	}
	return len(text), tomlQuotes(marks)
}

func tomlQuotes(marks int) error {
	if marks > 5 {
		return errTOMLQuotes
	}
	return nil
}
