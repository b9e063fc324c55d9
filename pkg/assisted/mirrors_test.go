package assisted

import (
	"encoding/pem"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestMirrorsDigest(t *testing.T) {
	g := NewWithT(t)
	digest := MirrorsDigest(map[string]string{RegistriesKey: "a", BundleKey: "b"})
	g.Expect(MirrorsDigest(map[string]string{RegistriesKey: "a", BundleKey: "b", "other": "c"})).To(Equal(digest))
	for _, data := range []map[string]string{
		nil,
		{RegistriesKey: "a"},
		{BundleKey: "b"},
		{RegistriesKey: "ab"},
		{RegistriesKey: "b", BundleKey: "a"},
	} {
		g.Expect(MirrorsDigest(data)).NotTo(Equal(digest))
	}
	g.Expect(OtherMirrors("v1-a", "v1-b")).To(BeTrue())
	g.Expect(OtherMirrors("v1-a", "v1-a")).To(BeFalse())
	g.Expect(OtherMirrors("", "v1-a")).To(BeFalse())
	g.Expect(OtherMirrors("v1-a", "")).To(BeFalse())
	g.Expect(OtherMirrors("a", "v1-a")).To(BeFalse(), "an update of the provider registers nothing again")
}

const registriesConf = `unqualified-search-registries = ["a.example", "b.example"]

[[registry]]
location = "quay.io"
[[registry.mirror]]
location = "first.example"
[[registry.mirror]]
location = "second.example"

[[registry]]
location = "registry.redhat.io"
insecure = true
`

func TestMirrorsDigestOfRegistriesConf(t *testing.T) {
	const quay, redHat = "[[registry]]\nlocation = \"quay.io\"\n", "[[registry]]\nlocation = \"registry.redhat.io\"\ninsecure = true\n"
	reordered := strings.Replace(strings.Replace(registriesConf, redHat, "", 1), quay, redHat+quay, 1)
	for situation, tc := range map[string]struct {
		text string
		same bool
	}{
		"comment":                {"# checked by Argo CD\n" + registriesConf, true},
		"spaces":                 {strings.ReplaceAll(registriesConf, " = ", "="), true},
		"other order":            {reordered, true},
		"default value":          {strings.Replace(registriesConf, quay, quay+"blocked = false\nprefix = \"\"\n", 1), true},
		"order of mirrors":       {strings.NewReplacer("first", "second", "second", "first").Replace(registriesConf), false},
		"order of searches":      {strings.NewReplacer("a.example", "b.example", "b.example", "a.example").Replace(registriesConf), false},
		"other value":            {strings.Replace(registriesConf, "insecure = true", "blocked = true", 1), false},
		"one registry fewer":     {strings.Split(registriesConf, "[[registry]]\nlocation = \"registry")[0], false},
		"key of a later version": {strings.Replace(registriesConf, "insecure = true", "insecure = true\nlater = 1", 1), false},
		"pull-from-mirror":       {strings.Replace(registriesConf, "first.example\"", "first.example\"\npull-from-mirror = \"\"", 1), false},
		"invalid":                {registriesConf + "[", false},
		"nested too deeply":      {registriesConf + "a = " + strings.Repeat("[", 99) + strings.Repeat("]", 99), false},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(tc.text).NotTo(Equal(registriesConf))
			equal := MirrorsDigest(map[string]string{RegistriesKey: tc.text}) == MirrorsDigest(map[string]string{RegistriesKey: registriesConf})
			g.Expect(equal).To(Equal(tc.same), tc.text)
		})
	}
}

// The decoder never sees a document whose nesting would take too much memory. Its text counts.
func TestMirrorsDigestOfDeepRegistriesConf(t *testing.T) {
	digest := func(text string) string { return MirrorsDigest(map[string]string{RegistriesKey: text}) }
	for _, deep := range []string{
		"a" + strings.Repeat(".a", 20) + " = 1\n",
		"a = " + strings.Repeat("{a=", 20) + "1" + strings.Repeat("}", 20) + "\n",
	} {
		NewWithT(t).Expect(digest(deep)).NotTo(Equal(digest(deep + "# comment")))
	}
}

// containers/image uses the first of several entries with one prefix. assisted-service keeps the order of the entries.
func TestMirrorsDigestKeepsOrderOfEqualEntries(t *testing.T) {
	for situation, tc := range map[string]struct {
		a, b string
		same bool
	}{
		"one location":                {`location = "q"`, "location = \"q\"\nblocked = true", false},
		"one prefix":                  {"prefix = \"q\"\nlocation = \"a\"", "prefix = \"q\"\nlocation = \"b\"", false},
		"one location, two prefixes":  {"prefix = \"p\"\nlocation = \"q\"", `location = "q"`, false},
		"prefix is another location":  {"prefix = \"q\"\nlocation = \"p\"", `location = "q"`, false},
		"two prefixes, two locations": {"prefix = \"p\"\nlocation = \"q\"", `location = "r"`, true},
	} {
		digest := func(entries ...string) string {
			return MirrorsDigest(map[string]string{RegistriesKey: "[[registry]]\n" + strings.Join(entries, "\n[[registry]]\n") + "\n"})
		}
		same := digest(tc.a, tc.b) == digest(tc.b, tc.a)
		NewWithT(t).Expect(same).To(Equal(tc.same), situation)
	}
}

// The operator of an OpenShift hub rewrites a bundle with the same certificates.
func TestMirrorsDigestOfBundle(t *testing.T) {
	certificate := func(content string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(content)}))
	}
	a, b, c := certificate("a"), certificate("b"), certificate("c")
	digest := func(bundle string) string { return MirrorsDigest(map[string]string{BundleKey: bundle}) }
	for situation, tc := range map[string]struct {
		bundle string
		same   bool
	}{
		"other order":    {b + a, true},
		"comment":        {"# Root\n" + a + "\n# Other\n" + b, true},
		"repetition":     {a + b + a, true},
		"another":        {a + c, false},
		"one more":       {a + b + c, false},
		"one fewer":      {a, false},
		"none":           {"", false},
		"text at end":    {a + b + "# end\n", false},
		"cut off":        {a + b + c[:40], false},
		"spaces at end":  {a + b + "\n \n", true},
		"block of a key": {a + strings.ReplaceAll(b, "CERTIFICATE", "PRIVATE KEY"), false},
		"no PEM block":   {"certificate", false},
	} {
		t.Run(situation, func(t *testing.T) {
			want := Equal(digest(a + b))
			if !tc.same {
				want = Not(want)
			}
			NewWithT(t).Expect(digest(tc.bundle)).To(want)
		})
	}
	NewWithT(t).Expect(digest("certificate")).NotTo(Equal(digest("")))
}
