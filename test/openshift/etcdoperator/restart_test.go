package etcdoperator

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// The downtime of a removed member starts from the beginning on a host that was wiped and installed again.
func TestRemovedMemberIsDownEachTime(t *testing.T) {
	g, o := NewWithT(t), New(Options{Restart: time.Hour})
	exited := []string{"master-0"}
	g.Expect(o.due(exited)).To(BeEmpty())
	g.Expect(o.discards("master-0", true)).To(BeFalse(), "it has just exited")
	o.exited["master-0"] = time.Now().Add(-2 * time.Hour)
	g.Expect(o.due(nil)).To(BeEmpty(), "its host was wiped")

	g.Expect(o.due(exited)).To(BeEmpty())
	g.Expect(o.discards("master-0", true)).To(BeFalse(), "it has just exited again")
	o.exited["master-0"] = time.Now().Add(-2 * time.Hour)
	g.Expect(o.due(exited)).To(BeEmpty(), "a removed member is not restarted with its data")
	g.Expect(o.discards("master-0", true)).To(BeTrue())

	g.Expect(o.discards("master-0", false)).To(BeFalse())
	o.exited["master-0"] = time.Now().Add(-2 * time.Hour)
	g.Expect(o.due(exited)).To(Equal(exited), "an existing member is restarted")
}
