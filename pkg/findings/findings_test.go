package findings

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestLastResultOfTaskWins(t *testing.T) {
	g := NewWithT(t)
	var f Findings[string]
	g.Expect(f.Blocked("a")).To(BeNil())
	g.Expect(f.Passed("a")).To(BeNil())

	g.Expect(f.Block("a", "First", "100% first")).To(BeFalse(), "the phase stops")
	g.Expect(f.Blockf("a", "Second", "%d", 2)).To(BeFalse())
	g.Expect(f.Blocked("a")).To(Equal(&Outcome{"Second", "2"}))
	f.Pass("a", "Done", "")
	g.Expect(f.Blocked("a")).To(BeNil())
	g.Expect(f.Passed("a")).To(Equal(&Outcome{"Done", ""}))
	f.Block("a", "Again", "")
	g.Expect(f.Passed("a")).To(BeNil())
	g.Expect(f.Blocked("b")).To(BeNil(), "another task")
}

func TestEventsAreKeptInOrder(t *testing.T) {
	g := NewWithT(t)
	var f Findings[string]
	f.Event("Normal", "Created", "%d Machines", 3)
	f.StatusEvent("Warning", "Refused", "no")
	g.Expect(f.Events()).To(Equal([]Event{
		{Type: "Normal", Reason: "Created", Message: "3 Machines"}, {Type: "Warning", Reason: "Refused", Message: "no", OfStatus: true},
	}))
}
