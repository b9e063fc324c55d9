package quorum

import (
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
)

// A cluster names its members, and conditions are UTF-8.
func TestShortenedNamesStayValid(t *testing.T) {
	g := NewWithT(t)
	g.Expect(utf8.ValidString(Shorten(strings.Repeat("x", longest-1) + "é" + "y"))).To(BeTrue())
	g.Expect(Shorten("n0")).To(Equal("n0"))
}
