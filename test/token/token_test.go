package token

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestTokens(t *testing.T) {
	g := NewWithT(t)
	key, err := NewKey()
	g.Expect(err).NotTo(HaveOccurred())
	other, err := NewKey()
	g.Expect(err).NotTo(HaveOccurred())
	one, err := key.Sign(InfraEnv, "a")
	g.Expect(err).NotTo(HaveOccurred())
	two, err := key.Sign(InfraEnv, "a")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(one).NotTo(Equal(two))
	g.Expect(key.Valid(one)).To(BeTrue())
	g.Expect(other.Valid(one)).To(BeFalse())
	g.Expect(key.Valid("a.b.c")).To(BeFalse())
	g.Expect(key.Valid("")).To(BeFalse())
}
