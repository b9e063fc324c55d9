package hosts

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestParseEnvironmentFile(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want map[string]string
	}{
		"plain":                          {"A=b\nC=d\n", map[string]string{"A": "b", "C": "d"}},
		"no newline at the end":          {"A=b", map[string]string{"A": "b"}},
		"later line wins":                {"A=b\nA=c", map[string]string{"A": "c"}},
		"comments and blank lines":       {"# A=1\n\n ; B=2\nC=3", map[string]string{"C": "3"}},
		"white space around":             {"  A = b c \t\n", map[string]string{"A": "b c"}},
		"double quotes":                  {`A="x=y,z= w "`, map[string]string{"A": "x=y,z= w "}},
		"single quotes keep backslash":   {`A='a\nb $C'`, map[string]string{"A": `a\nb $C`}},
		"escapes in double quotes":       {`A="\$(id) \"q\" \\ \n"`, map[string]string{"A": `$(id) "q" \ \n`}},
		"nothing is expanded":            {"A=$(id) ${B}\n", map[string]string{"A": "$(id) ${B}"}},
		"backslash outside quotes":       {`A=a\ b\"c`, map[string]string{"A": `a b"c`}},
		"line continuation":              {"A=a\\\nb\n", map[string]string{"A": "ab"}},
		"quotes inside a value are text": {`A=a"b"`, map[string]string{"A": `a"b"`}},
		"quoted parts are joined":        {`A="a" 'b'`, map[string]string{"A": "ab"}},
		"value over lines in quotes":     {"A=\"a\nb\"\nC=d", map[string]string{"A": "a\nb", "C": "d"}},
		"empty value":                    {"A=\nB=''", map[string]string{"A": "", "B": ""}},
		"no name, no assignment":         {"1A=b\nexport C=d\nnothing\n=e", map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(ParseEnvironmentFile(tc.text)).To(Equal(tc.want))
		})
	}
}
