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

// FuzzTOML checks that no document hides its nesting from the scan, for example in what only the scan reads as a string.
func FuzzTOML(f *testing.F) {
	for _, text := range []string{
		"[[registry]]\nlocation = \"quay.io\"\n[[registry.mirror]]\nlocation = 'mirror:5000/ocp'\n",
		`a = """x\""""""` + "\nb.c.d = [[{e.f = 1}], '', \"\", '''\n''''', \"\"\"\"\"\"] # \"x\r\n",
		"\"a.b\".'c' = 1.5\n\xff\xfe", "a = 1979-05-27T07:32:00Z", "a = {\n b = 1, # c\n}",
		"a = " + strings.Repeat("[", 100) + strings.Repeat("]", 100), "a" + strings.Repeat(".a", 100) + " = 1",
		"a = \"\"\"\"\"\"\"\"\nb = " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + " # \"\"\"",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var content map[string]any
		if len(text) > 4<<10 || UnmarshalTOML(text, &content) != nil {
			return
		}
		// Dots of a table header, dots of a key, and brackets.
		NewWithT(t).Expect(depthOf(content)).To(BeNumerically("<=", 2*(tomlDots+1)+tomlOpen+1), "%q", text)
	})
}

func depthOf(value any) int {
	deepest := 0
	switch value := value.(type) {
	case map[string]any:
		for _, item := range value {
			deepest = max(deepest, depthOf(item))
		}
	case []map[string]any:
		for _, item := range value {
			deepest = max(deepest, depthOf(item))
		}
	case []any:
		for _, item := range value {
			deepest = max(deepest, depthOf(item))
		}
	default:
		return 0
	}
	return deepest + 1
}
