package etcdoperator

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestARemovedMemberIsAwayEachTime: also on a host that was removed before, wiped, and installed again.
func TestARemovedMemberIsAwayEachTime(t *testing.T) {
	g, o := NewWithT(t), New(Options{Restart: time.Hour})
	ended := []string{"master-0"}
	g.Expect(o.due(ended)).To(BeEmpty())
	g.Expect(o.discards("master-0", true)).To(BeFalse(), "it has just ended")
	o.ended["master-0"] = time.Now().Add(-2 * time.Hour)
	g.Expect(o.due(nil)).To(BeEmpty(), "its host was wiped")

	g.Expect(o.due(ended)).To(BeEmpty())
	g.Expect(o.discards("master-0", true)).To(BeFalse(), "it has just ended again")
	o.ended["master-0"] = time.Now().Add(-2 * time.Hour)
	g.Expect(o.due(ended)).To(BeEmpty(), "one that others removed is not just started")
	g.Expect(o.discards("master-0", true)).To(BeTrue())

	g.Expect(o.discards("master-0", false)).To(BeFalse())
	o.ended["master-0"] = time.Now().Add(-2 * time.Hour)
	g.Expect(o.due(ended)).To(Equal(ended), "one that ended by itself is")
}
