package bound

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func nested(open, closing string, levels int) string {
	return "a = " + strings.Repeat(open, levels) + "1" + strings.Repeat(closing, levels)
}

func TestUnmarshalTOMLBoundsNesting(t *testing.T) {
	const deep, long = "nested too deeply", "KiB (maximum 128 KiB)"
	for situation, tc := range map[string]struct{ text, problem string }{
		"dotted key":                  {"a" + strings.Repeat(".a", 17) + " = 1", deep},
		"dotted key at the limit":     {"a" + strings.Repeat(".a", 16) + " = 1", ""},
		"dotted key with spaces":      {"a" + strings.Repeat(" . a", 17) + " = 1", deep},
		"dotted key of quoted parts":  {`"a"` + strings.Repeat(`."a"`, 17) + " = 1", deep},
		"table":                       {"[a" + strings.Repeat(".a", 17) + "]\nb = 1", deep},
		"arrays":                      {nested("[", "]", 17), deep},
		"arrays at the limit":         {nested("[", "]", 16), ""},
		"arrays on many lines":        {nested("[\n", "]\n", 17), deep},
		"inline tables":               {nested("{a=", "}", 17), deep},
		"dotted keys in tables":       {nested("{a.a=", "}", 16) + "\nb" + strings.Repeat(".a", 17) + "=1", deep},
		"dotted keys in inline table": {"a = {\n" + strings.Repeat("a.", 9) + "a = {\n" + strings.Repeat("a.", 9) + "a = 1}}", deep},
		"after a comment":             {"# \"\"\"\r\n" + nested("[", "]", 17), deep},
		"after a comment of CR":       {"# '\r" + nested("[", "]", 17), deep},
		"after an escaped quote":      {`a = "\""` + "\nb" + strings.Repeat(".a", 17) + " = 1", deep},
		"after a literal backslash":   {`a = '\'` + "\nb" + strings.Repeat(".a", 17) + " = 1", deep},
		"after empty strings":         {`a = ["", '', """""", '''''']` + "\nb" + strings.Repeat(".a", 17) + " = 1", deep},
		"after five marks":            {`a = """x"""""` + "\nb" + strings.Repeat(".a", 17) + " = 1", deep},
		"after an escaped mark":       {`a = """x\""""""` + "\nb" + strings.Repeat(".a", 17) + " = 1", deep},
		"six marks":                   {`a = """x""""""` + "\n", "quotation marks"},
		"dots in strings":             {`a = ["` + strings.Repeat("a.", 99) + `", '''` + strings.Repeat("[", 99) + `''']`, ""},
		"dots in a comment":           {"a = 1 # " + strings.Repeat(".", 99) + strings.Repeat("[", 99) + "\nb = 1", ""},
		"dots of many statements":     {strings.Repeat("[[registry]]\n[[registry.mirror]]\n", 99), ""},
		"string without end":          {`a = "` + strings.Repeat(".", 99), "toml"},
		"too long":                    {"#" + strings.Repeat(" ", tomlBytes), long},
	} {
		t.Run(situation, func(t *testing.T) {
			want := Succeed()
			if tc.problem != "" {
				want = MatchError(ContainSubstring(tc.problem))
			}
			NewWithT(t).Expect(UnmarshalTOML(tc.text, &map[string]any{})).To(want)
		})
	}
}
