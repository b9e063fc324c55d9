package decision

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestJoin(t *testing.T) {
	g := NewWithT(t)
	watched, unwatched := Watch("First", "one %s", "cause"), Wait("Second", "two")
	g.Expect(Join([]Blocker{watched, unwatched})).To(Equal(Blocker{Reason: "First", Message: "one cause; two"}),
		"no event reports the end of the second")
	g.Expect(Join([]Blocker{watched, watched}).Watched).To(BeTrue())
}

func TestAbout(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Watch("First", "one").About("Machine %s is not deleted", "m0")).To(Equal(Blocker{
		Reason:  "First",
		Message: "Machine m0 is not deleted: one", Watched: true,
	}))
}
