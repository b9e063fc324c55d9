package assisted

import (
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
	g.Expect(OtherMirrors("a", "b")).To(BeTrue())
	g.Expect(OtherMirrors("a", "a")).To(BeFalse())
	g.Expect(OtherMirrors("", "a")).To(BeFalse())
	g.Expect(OtherMirrors("a", "")).To(BeFalse())
}
