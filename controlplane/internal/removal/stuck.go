package removal

import (
	"slices"
	"time"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// stuckAfter is how long the infrastructure of a released Machine may take to be deleted. Metal3 switches a
// host off and wipes its metadata within minutes. After half an hour its BMC most likely does not answer.
const stuckAfter = 30 * time.Minute

// Stuck returns the Machines whose hosts left etcd, but whose infrastructure is not deleted since, for
// example because of a dead BMC. next is the time until the next one becomes stuck; zero if there is none. A
// Machine without a recorded release is never stuck. Its host is recorded before its member is removed, and
// the hook may have been removed by hand.
func (a *Situation) Stuck(now time.Time) (stuck []quorum.Machine, next time.Duration) {
	for _, m := range a.Machines {
		record := a.recordOf(m)
		if m.Deleted.IsZero() || m.HasHook || !m.Terminating || record == nil || record.Released == nil {
			continue
		}
		from := record.Released.Time
		if record.MachineUID != m.UID && from.Before(m.Deleted) { // the record is of a former Machine on the same host
			from = m.Deleted
		}
		left := stuckAfter - now.Sub(from)
		switch {
		case left <= 0:
			stuck = append(stuck, m)
		case next == 0 || left < next:
			next = left
		}
	}
	return stuck, next
}

// AgainstSuccessor returns all blockers of a replacement for a stuck Machine. The server may run on without
// its BMC. OpenShift then adds the running host to etcd again, as one more voter. The host counts as removed
// only if etcd has no member of it and its kubelet does not report.
func (a *Situation) AgainstSuccessor(m quorum.Machine, etcd *workload.Etcd) []decision.Blocker {
	record := a.recordOf(m)
	if record == nil || m.HasHook || m.Deleted.IsZero() {
		return []decision.Blocker{
			decision.Watch(controlplanev1.WaitingForMachinesDeletionReason, "it is not recorded that the host of Machine %s left etcd", m.Name),
		}
	}
	v := view{Situation: a, Etcd: etcd}
	if blocker := quorum.Unclear(v.Etcd); blocker != nil {
		return []decision.Blocker{*blocker}
	}
	left := record.on(v.nodes())
	if back := slices.IndexFunc(v.Members, func(member workload.EtcdMember) bool { return v.isBack(member, left) }); back >= 0 {
		return []decision.Blocker{
			decision.Wait(
				controlplanev1.WaitingForMachinesDeletionReason,
				"the host of Machine %s, which is being deleted, is etcd member %s again: its server runs. Unplug the server; when its "+
					"infrastructure is deleted, its disks are wiped",
				m.Name,
				quorum.NameOf(v.Members[back]),
			),
		}
	}
	if blocker := v.reregistered(m, left); blocker != nil {
		return []decision.Blocker{*blocker}
	}
	if node := v.Node(left.Node); node != nil && node.UID == left.UID && !node.Silent {
		return []decision.Blocker{
			decision.Wait(
				controlplanev1.WaitingForMachinesDeletionReason,
				"the kubelet of Node %s reports, although the Machine %s of this Node is being deleted: its server runs and may join "+
					"etcd again. Unplug the server; when its infrastructure is deleted, its disks are wiped",
				node.Name,
				m.Name,
			),
		}
	}
	return nil
}
