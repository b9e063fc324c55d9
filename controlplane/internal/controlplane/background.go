package controlplane

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// initialBackgroundDelay is after what time that is asked again of which no Machine waits for the end; the time grows
// up to maxInspectionDelay.
const initialBackgroundDelay = reconcile.LowPriorityDelay

// question is what is asked of etcd beside what a Machine waits for: events say nothing of it, so that only time decides when.
type question struct {
	// next is when to ask, pace how much later after that, asked how often nothing was found.
	next  time.Time
	pace  wait.Backoff
	asked int
	// found is what there is to be told; nil: nothing.
	found *decision.Blocker
}

// answered notes an answer: one that changes makes it be asked soon again.
func (q *question) answered(now time.Time, found *decision.Blocker, changed bool) {
	q.asked++
	if changed || reportText(found) != reportText(q.found) {
		q.pace = paceFrom(initialBackgroundDelay)
	}
	if changed || found != nil {
		q.asked = 0
	}
	q.next, q.found = now.Add(q.pace.Step()), found
}

// reportText is what is reported of a blocker; empty: nothing.
func reportText(blocker *decision.Blocker) string {
	if blocker == nil {
		return ""
	}
	return blocker.Reason + " " + blocker.Message
}

// checkInBackground asks something of etcd when it is time, after some time first; id tells what. What was found is
// told until the next time. When nothing was found as often as at most, it is not asked any more.
func (r *Reconciler) checkInBackground(s *scope, id string, after time.Duration, most int, ask func() (found *decision.Blocker, changed bool)) {
	q := question{next: r.now().Add(after), pace: paceFrom(initialBackgroundDelay)}
	if known, ok := r.inspections.background.Get(id); ok {
		q = known
	}
	if !q.next.After(r.now()) && q.asked < most {
		r.runCheck(&q, ask)
	}
	r.inspections.background.Add(id, q)
	if q.found != nil {
		s.found.Block(status.HostRelease, q.found.Reason, bound.Message(q.found.Message))
	}
	if q.asked < most {
		s.again.In(q.next.Sub(r.now()))
	}
}

// runCheck runs a check, unless the etcd of many clusters is inspected at this time.
func (r *Reconciler) runCheck(q *question, ask func() (found *decision.Blocker, changed bool)) {
	if !r.inspections.free.TryAcquire(1) {
		q.next = r.now().Add(r.inspections.turn(false))
		return
	}
	defer r.inspections.free.Release(1)
	found, changed := ask()
	q.answered(r.now(), found, changed)
}
