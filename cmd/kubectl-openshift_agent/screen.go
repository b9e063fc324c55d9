package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// screen writes text that contains foreign names and messages, which must not clear the screen or hide a line. As JSON does,
// it escapes characters that control a terminal or change the direction of writing. Line breaks and tabs pass.
type screen struct{ io.Writer }

// Write implements io.Writer. Each text must end with a whole character.
func (s screen) Write(text []byte) (int, error) {
	var safe strings.Builder
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1, // an 8-bit terminal reads the byte 0x9b as the start of a sequence
			unicode.IsControl(r) && r != '\n' && r != '\t', unicode.Is(unicode.Bidi_Control, r):
			fmt.Fprintf(&safe, `\u%04x`, r)
		default:
			safe.WriteRune(r)
		}
		rest = rest[size:]
	}
	if _, err := io.WriteString(s.Writer, safe.String()); err != nil {
		return 0, err
	}
	return len(text), nil
}
