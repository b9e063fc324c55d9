package bound

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTextsAreBoundedAndClean(t *testing.T) {
	for name, tc := range map[string]struct {
		limit func(string) string
		text  string
		want  string
	}{
		"message that fits is unchanged":         {Message, "BareMetalHost lab/a has no MAC address.", "BareMetalHost lab/a has no MAC address."},
		"message of exactly the limit":           {Message, strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		"message beyond the limit is cut":        {Message, strings.Repeat("x", 40000), strings.Repeat("x", 1021) + "…"},
		"message keeps the lines of Cluster API": {Message, "* Machine a:\n  * NotReady", "* Machine a:\n  * NotReady"},
		"message is cut between characters":      {Message, strings.Repeat("x", 1020) + strings.Repeat("ü", 9), strings.Repeat("x", 1020) + "…"},
		"foreign value":                          {Value, " S7\n", "S7"},
		"foreign value of 40,000 characters":     {Value, strings.Repeat("x", 40000), strings.Repeat("x", 61) + "…"},
		"line break in a value":                  {Value, "a\r\nb", "a  b"},
		"terminal escape in a value":             {Value, "a\x1b[31mb", "a [31mb"},
		"reversed direction of writing":          {Value, "a\u202eb", "ab"},
		"invalid UTF-8":                          {Value, "a\xff\xfeb", "a\uFFFDb"},
		"other alphabets stay":                   {Value, "Größe 日本", "Größe 日本"},
		"foreign sentence":                       {Cause, strings.Repeat("x", 600), strings.Repeat("x", 509) + "…"},
		"megabytes of line breaks":               {Message, strings.Repeat("\x00", 8<<20), ""},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(tc.limit(tc.text)).To(Equal(tc.want))
		})
	}
}

func TestListNamesThreeAndCounts(t *testing.T) {
	g := NewWithT(t)
	g.Expect(List(nil)).To(BeEmpty())
	g.Expect(List([]string{"a", "b", "c"})).To(Equal("a, b, c"))
	g.Expect(List([]string{"a", "b", "c", "d", "e"})).To(Equal("a, b, c and 2 more"))
	g.Expect(Join([]string{"a", "b", "c"}, "host")).To(Equal("a; b; c"))
	g.Expect(Join([]string{"a", "b", "c", "d"}, "host")).To(Equal("a; b; c; 1 more host"))
	g.Expect(Join([]string{"a", "b", "c", "d", "e"}, "")).To(Equal("a; b; c; 2 more"))
}

func TestLongItemDoesNotDisplaceOthers(t *testing.T) {
	g := NewWithT(t)
	joined := Join([]string{strings.Repeat("x", 40000), "Agent b is another host", "Agent c is another host", "d"}, "Agent")
	g.Expect(joined).To(HaveSuffix("…; Agent b is another host; Agent c is another host; 1 more Agent"))
	g.Expect(len(joined)).To(BeNumerically("<=", 800))
	items := []string{"a", "b", "c", "d"}
	_ = Join(items, "host")
	g.Expect(items).To(Equal([]string{"a", "b", "c", "d"}), "the list of the caller is not changed")
}

func TestSuffixStaysWhole(t *testing.T) {
	g := NewWithT(t)
	const links = "; events: https://assisted.example/events"
	g.Expect(FitBefore("short", links) + links).To(Equal("short" + links))
	long := FitBefore(strings.Repeat("x", 40000), links) + links
	g.Expect(long).To(And(HaveSuffix("…"+links), HaveLen(MessageBytes)))
	g.Expect(Message(long)).To(Equal(long))
}

func TestIdentifierIsWholeOrAbsent(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Identifier("4.19.3", 255)).To(Equal("4.19.3"))
	g.Expect(Identifier("4.19.3-"+strings.Repeat("x", 40000), 255)).To(BeEmpty())
	g.Expect(Identifier("4.19.3\n", 255)).To(BeEmpty())
}

func TestConditionsAreBoundedInPlace(t *testing.T) {
	g := NewWithT(t)
	conditions := []metav1.Condition{{Type: "Ready", Message: strings.Repeat("x", 40000)}, {Type: "Paused", Message: "no"}}
	Conditions(conditions)
	g.Expect(conditions[0].Message).To(HaveLen(MessageBytes))
	g.Expect(conditions[1].Message).To(Equal("no"))
}
