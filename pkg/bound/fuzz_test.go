package bound

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	. "github.com/onsi/gomega"
)

func FuzzTexts(f *testing.F) {
	for _, seed := range []string{"", "a\nb", "a\xff", strings.Repeat("ü", 600), "\u202e\u2028\x00", strings.Repeat("x", 1022) + "日"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g := NewWithT(t)
		for limit, bounded := range map[int]string{
			MessageBytes: Message(text), ValueBytes: Value(text), CauseBytes: Cause(text), 100: Shorten(text, 100),
		} {
			g.Expect(len(bounded)).To(BeNumerically("<=", limit))
			g.Expect(utf8.ValidString(bounded)).To(BeTrue())
			g.Expect(strings.IndexFunc(bounded, func(r rune) bool { return !unicode.IsPrint(r) && (r != '\n' || limit != MessageBytes) })).
				To(Equal(-1))
		}
		g.Expect(Message(Message(text))).To(Equal(Message(text)), "a bounded text is not bounded again")
	})
}
