// Package remediation decides which unhealthy control-plane Machine is replaced, as KubeadmControlPlane does: whether
// it is deleted now, or what comes before. It computes; it has no client. That a deletion does no harm to etcd is made
// sure by whoever holds the host until it has left: here it is asked beforehand whether it would be let go.
package remediation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
)

// Situation is what is decided upon without looking at etcd.
type Situation struct {
	*facts.Facts
	// Machines are those that are to be remediated, and are not being deleted yet.
	Machines []*clusterv1.Machine

	now time.Time
	// recorded is the remediation in progress, corrupt why that cannot be told.
	recorded *facts.Remediation
	corrupt  error
	// released are the hosts that leave etcd, doubt is why these cannot be told.
	released *removal.Situation
	doubt    error
}

// Step is what is to be done about the Machine that comes first.
type Step struct {
	Machine *clusterv1.Machine
	// Delete tells that it is to be deleted, and Record what is to be recorded before. Otherwise it waits.
	Delete bool
	Record facts.Remediation
	// Reason and Message tell people what is waited for; they are those of its condition OwnerRemediated.
	Reason, Message string
	// After is when the wait ends, where it ends by time.
	After time.Duration
	// Unwatched tells that no event comes when the wait may be over: etcd has to be looked at again.
	Unwatched bool
}

// Of is what can be asked about the unhealthy Machines of a control plane.
func Of(f *facts.Facts, now time.Time) *Situation {
	a := &Situation{Facts: f, now: now}
	for _, m := range f.Machines {
		if m.DeletionTimestamp.IsZero() && f.ToBeRemediated(m) {
			a.Machines = append(a.Machines, m)
		}
	}
	a.recorded, a.corrupt = facts.RemediationIn(f.ControlPlane, controlplanev1.RemediationInProgressAnnotation)
	if len(a.Machines) > 0 { // which are few: of every other control plane nothing of this is asked
		a.released, a.doubt = removal.Of(f)
	}
	return a
}

// Over reports whether a remediation is recorded that has come to its end: another Machine took the place of the one
// that was deleted, or none is wanted any more. One that is healthy again before its deletion was asked for is not
// deleted.
func (a *Situation) Over() bool {
	if a.recorded == nil {
		return false
	}
	record := a.ControlPlane.Annotations[controlplanev1.RemediationInProgressAnnotation]
	next := func(m *clusterv1.Machine) bool {
		return m.Annotations[controlplanev1.RemediationForAnnotation] == record
	}
	at := slices.IndexFunc(a.Facts.Machines, func(m *clusterv1.Machine) bool { return m.Name == a.recorded.Machine && !next(m) })
	switch {
	case at >= 0:
		m := a.Facts.Machines[at]
		return m.DeletionTimestamp.IsZero() && !a.ToBeRemediated(m)
	case slices.ContainsFunc(a.Facts.Machines, next): // which may have the name of the one in whose place it is
		return true
	}
	return len(a.Facts.Machines) >= int(a.Replicas())
}

// Before is what comes before all else, as far as it can be told without looking at etcd; nil: nothing does.
func (a *Situation) Before() *Step {
	m := a.first(nil)
	for _, check := range []func(*clusterv1.Machine) *Step{a.installed, a.fenced, a.single, a.kept, a.upgrading, a.leaving, a.installing} {
		if step := check(m); step != nil {
			return step
		}
	}
	if len(a.Machines) > 1 {
		return nil // of several etcd tells which comes first
	}
	_, step := a.retried(m)
	return step
}

// Decide tells what is to be done about the Machine that comes first.
func (a *Situation) Decide(etcd *facts.Etcd) Step {
	m := a.first(etcd)
	record, wait := a.retried(m)
	if wait == nil {
		wait = a.missingHook(m)
	}
	if wait != nil {
		return *wait
	}
	if step := a.changing(m, etcd); step != nil {
		step.Unwatched = true
		return *step
	}
	if step := a.release(m, etcd); step.Action == removal.Wait {
		return Step{Machine: m, Reason: reasonOf(step.Blocker), Message: "Machine is not replaced: " + step.Blocker.Message, Unwatched: !step.Blocker.Watched}
	}
	return Step{Machine: m, Delete: true, Record: a.taken(record), Reason: controlplanev1.MachineRemediationMachineDeletingReason, Message: Deleting}
}

// taken is what is recorded of a decision: one that was recorded before, and not carried out, is taken up as it was.
func (a *Situation) taken(record facts.Remediation) facts.Remediation {
	if a.recorded != nil && a.recorded.Machine == record.Machine && a.recorded.RetryCount == record.RetryCount {
		return *a.recorded
	}
	return record
}

// Unread is what is told when nothing can be learnt of etcd.
func (a *Situation) Unread(why string, watched bool) Step {
	step := deferred(a.first(nil), "%s", why)
	step.Unwatched = !watched
	return *step
}

// Deleting is what is told of a Machine that is being deleted.
const Deleting = "Machine is deleting"

// reasonOf reports whether a wait passes by itself as things are.
func reasonOf(blocker decision.Blocker) string {
	switch blocker.Reason {
	case controlplanev1.WaitingForEtcdReason, controlplanev1.WaitingForReplacementReason, controlplanev1.EtcdUnknownReason:
		return controlplanev1.MachineRemediationDeferredReason
	}
	return controlplanev1.MachineCannotBeRemediatedReason
}

// release is what would be done about the host of a Machine if that waited to be let go.
func (a *Situation) release(m *clusterv1.Machine, etcd *facts.Etcd) removal.Step {
	at := slices.IndexFunc(a.released.Machines, func(known removal.Machine) bool { return known.Name == m.Name })
	return a.released.Decide(a.released.Machines[at:at+1], etcd)
}

// first is the Machine that is remediated first: the one that was begun with, else one that the user marked, else one
// without Node, else one whose etcd member is down, or is none, as far as it is known; of these the oldest. OpenShift
// does not tell the health of its other components by host.
func (a *Situation) first(etcd *facts.Etcd) *clusterv1.Machine {
	return slices.MinFunc(a.Machines, func(m, n *clusterv1.Machine) int {
		return cmp.Or(
			cmp.Compare(a.rank(m, etcd), a.rank(n, etcd)),
			m.CreationTimestamp.Compare(n.CreationTimestamp.Time),
			cmp.Compare(m.Name, n.Name),
		)
	})
}

func (a *Situation) rank(m *clusterv1.Machine, etcd *facts.Etcd) int {
	switch {
	case a.recorded != nil && a.recorded.Machine == m.Name:
		return 0
	case annotations.HasRemediateMachine(m):
		return 1
	case !m.Status.NodeRef.IsDefined():
		return 2
	case etcd != nil && !a.serves(m, etcd):
		return 3
	}
	return 4
}

// serves reports whether the host of a Machine is proven to be a healthy member that votes.
func (a *Situation) serves(m *clusterv1.Machine, etcd *facts.Etcd) bool {
	member := a.release(m, etcd).Member
	return member.ID != 0 && !member.Learner && member.Healthy()
}

// isDown reports whether the host of a Machine is proven to be a member that is down.
func (a *Situation) isDown(m *clusterv1.Machine, etcd *facts.Etcd) bool {
	member := a.release(m, etcd).Member
	return member.ID != 0 && !member.Healthy()
}

// installing is about the host of the Machine itself.
func (a *Situation) installing(m *clusterv1.Machine) *Step {
	if a.installs(m) {
		return deferred(m, "waiting for the installation of the host of %s. If the host does not come up, delete its Machine, which wipes the host", m.Name)
	}
	return nil
}

// retried reports whether a Machine may be replaced that was made in the place of an unhealthy one itself, and what is
// recorded then. What befalls it long after that has nothing to do with the first failure.
func (a *Situation) retried(m *clusterv1.Machine) (facts.Remediation, *Step) {
	record := facts.Remediation{Machine: m.Name, Timestamp: metav1.NewTime(a.now.UTC().Truncate(time.Second))}
	before, err := facts.RemediationIn(m, controlplanev1.RemediationForAnnotation)
	limits := a.ControlPlane.Spec.Remediation
	seconds := func(set *int32, otherwise int32) time.Duration {
		return time.Duration(ptr.Deref(set, otherwise)) * time.Second
	}
	healthy, retry := seconds(limits.MinHealthyPeriodSeconds, minHealthySeconds), seconds(limits.RetryPeriodSeconds, 0)
	early := func() time.Duration { return before.Timestamp.Add(retry).Sub(a.now) }
	switch {
	case err != nil:
		return record, cannot(m, "%s: correct it, or take it off", err)
	case before == nil || !before.Timestamp.Add(healthy).After(a.now):
		return record, nil
	case 0 < early() && early() <= 2*retry: // what was recorded by a clock that was far ahead would never be over
		step := deferred(m, "it took the place of Machine %s, which was replaced less than %s ago (spec.remediation.retryPeriodSeconds)", before.Machine, retry)
		step.After = early()
		return record, step
	case limits.MaxRetry != nil && before.RetryCount >= *limits.MaxRetry:
		step := cannot(m, "%s in its place %s replaced already because of the same failure (spec.remediation.maxRetry): find out what is wrong with the hosts, then delete the Machine, which wipes its host",
			english.Plural(int(before.RetryCount+1), "Machine", ""), english.PluralWord(int(before.RetryCount+1), "was", "were"))
		step.After = before.Timestamp.Add(healthy).Sub(a.now)
		return record, step
	}
	record.RetryCount = before.RetryCount + 1
	return record, nil
}

// minHealthySeconds is what minHealthyPeriodSeconds is when it is omitted.
const minHealthySeconds = 3600

func deferred(m *clusterv1.Machine, format string, args ...any) *Step {
	return &Step{Machine: m, Reason: controlplanev1.MachineRemediationDeferredReason, Message: "Machine is not replaced yet: " + fmt.Sprintf(format, args...)}
}

func cannot(m *clusterv1.Machine, format string, args ...any) *Step {
	return &Step{Machine: m, Reason: controlplanev1.MachineCannotBeRemediatedReason, Message: "Machine is not replaced: " + fmt.Sprintf(format, args...)}
}
