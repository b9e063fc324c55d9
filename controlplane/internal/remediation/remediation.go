// Package remediation decides which unhealthy control plane Machine is replaced, as KubeadmControlPlane does:
// whether it is deleted now, or what blocks the deletion. It computes and has no client. The pre-terminate
// hook protects etcd during the deletion. This package checks in advance whether the hook would release the
// host.
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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// Situation holds the facts for decisions that need no inspection of etcd.
type Situation struct {
	*facts.Facts
	// Machines are the Machines to remediate that are not being deleted yet.
	Machines []*clusterv1.Machine

	now time.Time
	// recorded is the remediation in progress. corrupt is why its record is invalid.
	recorded *facts.Remediation
	corrupt  error
	// released are the hosts that leave etcd. doubt is why their record is invalid.
	released *removal.Situation
	doubt    error
}

// Step is the action for the first Machine.
type Step struct {
	Machine *clusterv1.Machine
	// Delete is true if the Machine must be deleted, and Record is to be recorded before. Otherwise the Machine
	// waits.
	Delete bool
	Record facts.Remediation
	// Reason and Message are those of the condition OwnerRemediated. They describe the blocker.
	Reason, Message string
	// After is when the wait ends by time, or zero.
	After time.Duration
	// Unwatched is true if no event reports the end of the wait: etcd must be inspected again.
	Unwatched bool
}

// Of returns the Situation of the unhealthy Machines of a control plane. It calls released only for unhealthy Machines.
func Of(f *facts.Facts, now time.Time, released func() (*removal.Situation, error)) *Situation {
	a := &Situation{Facts: f, now: now}
	for _, m := range f.Machines {
		if m.DeletionTimestamp.IsZero() && f.ToBeRemediated(m) {
			a.Machines = append(a.Machines, m)
		}
	}
	a.recorded, a.corrupt = facts.RemediationIn(f.ControlPlane, controlplanev1.RemediationInProgressAnnotation)
	if len(a.Machines) > 0 {
		a.released, a.doubt = released()
	}
	return a
}

// Over reports whether the recorded remediation has ended. Either a Machine replaced the deleted one, or none
// is needed. A Machine that recovers before its deletion is not deleted.
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
	case slices.ContainsFunc(a.Facts.Machines, next): // the replacement may have the same name
		return true
	}
	return len(a.Facts.Machines) >= int(a.Replicas())
}

// Before returns the first blocker that is known without an inspection of etcd, or nil.
func (a *Situation) Before() *Step {
	m := a.first(nil)
	for _, check := range []func(*clusterv1.Machine) *Step{
		a.installed, a.twoNode, a.single, a.validRecords, a.upgrading, a.leaving,
		a.installing,
	} {
		if step := check(m); step != nil {
			return step
		}
	}
	if len(a.Machines) > 1 {
		return nil // the order depends on etcd
	}
	_, step := a.retried(m)
	return step
}

// Decide returns the action for the first Machine.
func (a *Situation) Decide(etcd *workload.Etcd) Step {
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
		return Step{
			Machine: m, Reason: reasonOf(step.Blocker), Message: "Machine is not replaced: " + step.Blocker.Message,
			Unwatched: !step.Blocker.Watched,
		}
	}
	return Step{
		Machine: m, Delete: true, Record: a.taken(record), Reason: controlplanev1.MachineRemediationMachineDeletingReason,
		Message: Deleting,
	}
}

// taken returns the record of a decision. A recorded decision that was not carried out is kept.
func (a *Situation) taken(record facts.Remediation) facts.Remediation {
	if a.recorded != nil && a.recorded.Machine == record.Machine && a.recorded.RetryCount == record.RetryCount {
		return *a.recorded
	}
	return record
}

// Unread returns the wait when etcd cannot be inspected.
func (a *Situation) Unread(why string, watched bool) Step {
	step := deferred(a.first(nil), "%s", why)
	step.Unwatched = !watched
	return *step
}

// Deleting is the message about a Machine that is being deleted.
const Deleting = "Machine is deleting"

// reasonOf returns the reason of a wait: deferred if the blocker can end without action of the user.
func reasonOf(blocker decision.Blocker) string {
	switch blocker.Reason {
	case controlplanev1.WaitingForEtcdReason, controlplanev1.WaitingForReplacementReason, controlplanev1.EtcdUnknownReason,
		controlplanev1.EtcdAlarmReason, controlplanev1.EtcdHostNotIdentifiedReason, controlplanev1.ReleasedHostRunningReason,
		controlplanev1.NodeDeletionForbiddenReason, controlplanev1.HealthUnknownReason:
		return controlplanev1.MachineRemediationDeferredReason
	}
	return controlplanev1.MachineCannotBeRemediatedReason
}

// release returns the step of package removal for the host of a Machine that is being deleted.
func (a *Situation) release(m *clusterv1.Machine, etcd *workload.Etcd) removal.Step {
	at := slices.IndexFunc(a.released.Machines, func(known quorum.Machine) bool { return known.Name == m.Name })
	return a.released.Decide(a.released.Machines[at:at+1], etcd)
}

// first returns the Machine to remediate first. The order is: recorded, marked by the user, without Node,
// with a failed or missing etcd member as far as known, oldest. OpenShift does not report the health of its
// other components by host.
func (a *Situation) first(etcd *workload.Etcd) *clusterv1.Machine {
	return slices.MinFunc(a.Machines, func(m, n *clusterv1.Machine) int {
		return cmp.Or(
			cmp.Compare(a.rank(m, etcd), a.rank(n, etcd)),
			m.CreationTimestamp.Compare(n.CreationTimestamp.Time),
			cmp.Compare(m.Name, n.Name),
		)
	})
}

func (a *Situation) rank(m *clusterv1.Machine, etcd *workload.Etcd) int {
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

// serves reports whether the host of a Machine is proven to be a healthy voting member.
func (a *Situation) serves(m *clusterv1.Machine, etcd *workload.Etcd) bool {
	member := a.release(m, etcd).Member
	return member.ID != 0 && !member.Learner && member.Healthy()
}

// isDown reports whether the host of a Machine is proven to be an unhealthy member.
func (a *Situation) isDown(m *clusterv1.Machine, etcd *workload.Etcd) bool {
	member := a.release(m, etcd).Member
	return member.ID != 0 && !member.Healthy()
}

// installing blocks while the host of the Machine itself is being installed.
func (a *Situation) installing(m *clusterv1.Machine) *Step {
	if a.installs(m) {
		return deferred(m, "waiting for the installation of the host of %s. If the host does not come up, delete its Machine, which wipes "+
			"the host", m.Name)
	}
	return nil
}

// retried returns the record of a replacement, or why a Machine that replaced an unhealthy one must not be
// replaced again. A failure long after the first one is independent.
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
		return record, cannot(m, "%s: correct or remove it", err)
	case before == nil || !before.Timestamp.Add(healthy).After(a.now):
		return record, nil
	case 0 < early() && early() <= 2*retry: // a time that a wrong clock recorded far in the future must not block for ever
		step := deferred(m, "it replaced Machine %s less than %s ago (spec.remediation.retryPeriodSeconds)", before.Machine, retry)
		step.After = early()
		return record, step
	case limits.MaxRetry != nil && before.RetryCount >= *limits.MaxRetry:
		step := cannot(m, "%s %s replaced before because of the same failure (spec.remediation.maxRetry). Find the cause, then delete the "+
			"Machine, which wipes its host",
			english.Plural(int(before.RetryCount+1), "Machine", ""), english.PluralWord(int(before.RetryCount+1), "was", "were"))
		step.After = before.Timestamp.Add(healthy).Sub(a.now)
		return record, step
	}
	record.RetryCount = before.RetryCount + 1
	return record, nil
}

// minHealthySeconds is the default of minHealthyPeriodSeconds.
const minHealthySeconds = 3600

func deferred(m *clusterv1.Machine, format string, args ...any) *Step {
	return &Step{Machine: m, Reason: controlplanev1.MachineRemediationDeferredReason, Message: "Machine is not replaced yet: " +
		fmt.Sprintf(format, args...)}
}

func cannot(m *clusterv1.Machine, format string, args ...any) *Step {
	return &Step{Machine: m, Reason: controlplanev1.MachineCannotBeRemediatedReason, Message: "Machine is not replaced: " +
		fmt.Sprintf(format, args...)}
}
