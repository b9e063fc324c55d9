package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// newWaitingHub is one of which a Machine waits for etcd, with its time.
func newWaitingHub(t *testing.T) (*hub, *time.Time) {
	t.Helper()
	h := newInstalledHub(t)
	now := time.Now()
	h.r.now = func() time.Time { return now }
	h.etcds.Members[2].Problem = "does not answer"
	h.deleteMachine(0)
	return h, &now
}

func TestEtcdIsLookedAtLessOftenTheLongerNothingChanges(t *testing.T) {
	h, now := newWaitingHub(t)
	for _, after := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute} {
		before := h.etcds.looks
		h.Expect(h.reconcile().RequeueAfter).To(Equal(after))
		h.Expect(h.etcds.looks).To(Equal(before + 1))
		h.Expect(after == firstLook || after >= reconcile.Long).To(BeTrue(), "nobody waits for the end of a longer one")
		*now = now.Add(after)
	}
	h.etcds.Members[2].Problem = "does not serve"
	h.Expect(h.reconcile().RequeueAfter).To(BeNumerically("<=", firstLook), "something changed")
	h.etcds.Members[2].Problem = "does not answer"
	*now = now.Add(firstLook)
	h.Expect(h.reconcile().RequeueAfter).To(BeNumerically("<=", firstLook), "and changed again")
}

func TestEventsMakeEtcdBeLookedAtButNotAllTheTime(t *testing.T) {
	h, now := newWaitingHub(t)
	h.reconcile()
	message := conditions.GetMessage(h.controlPlane(), controlplanev1.ScalingDownCondition)
	for range 3 {
		*now = now.Add(looksApart / 4)
		h.Expect(h.reconcile().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<", looksApart)))
	}
	h.Expect(h.etcds.looks).To(Equal(1))
	h.elapse()
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.ScalingDownCondition)).To(Equal(message), "it is told all the same")
	*now = now.Add(looksApart / 4)
	h.Expect(h.reconcile().RequeueAfter).To(Equal(firstLook), "an event does not make the next look later")
	h.Expect(h.etcds.looks).To(Equal(2))

	h.etcds.Members[2].Problem = ""
	*now = now.Add(looksApart)
	h.reconcile()
	h.Expect(h.held()).To(HaveLen(2))
}

func TestWhatCanGoOnDoesSoAtOnce(t *testing.T) {
	h, _ := newWaitingHub(t)
	h.etcds.Members[2].Problem = ""
	h.reconcile()
	h.Expect(h.etcds.calls).To(Equal([]string{"lead n1 instead of n0", "remove n0 through n1"}))
	going := h.machines()[0].Name
	h.finishMachine(going)
	h.deleteMachine(0)
	h.reconcile()
	h.Expect(h.etcds.calls).To(ContainElement("delete Secrets of n0"))
	before := h.etcds.looks
	h.reconcile()
	h.Expect(h.etcds.looks).To(Equal(before+1), "in the same moment")
	h.Expect(conditions.GetReason(h.controlPlane(), controlplanev1.ScalingDownCondition)).To(Equal(controlplanev1.WaitingForReplacementReason))
}

func TestFewClustersAreLookedAtAtOnce(t *testing.T) {
	h, now := newWaitingHub(t)
	h.Expect(h.r.looks.free.TryAcquire(looksAtOnce)).To(BeTrue())
	h.Expect(h.reconcile().RequeueAfter).To(Equal(looksApart))
	h.Expect(h.etcds.looks).To(BeZero())
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.ScalingDownCondition)).To(ContainSubstring("many clusters are asked"))
	h.r.looks.free.Release(looksAtOnce)
	*now = now.Add(looksApart)
	h.reconcile()
	h.Expect(h.etcds.looks).To(Equal(1))
	h.Expect(h.r.looks.free.TryAcquire(looksAtOnce)).To(BeTrue(), "each is given back")
}
