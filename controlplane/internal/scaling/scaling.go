// Package scaling decides which control-plane Machine goes when there are too many, and whether others may be made in
// an installed cluster that lacks some. It computes; it has no client. That a host leaves etcd before it is touched is
// the matter of package removal.
package scaling

import (
	"cmp"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
)

// leastVoters are those of the smallest control plane that survives the loss of a host. As long as there are fewer,
// another host is not kept waiting for anything but etcd.
const leastVoters = 3

// InOrder are Machines in the order in which they are taken when there are too many: first those that the user marked with the annotation
// cluster.x-k8s.io/delete-machine, then, of the failure domains with the most Machines, the newest.
func InOrder(machines []*clusterv1.Machine) []*clusterv1.Machine {
	domains := map[string]int{}
	for _, m := range machines {
		domains[m.Spec.FailureDomain]++
	}
	rank := func(m *clusterv1.Machine) int {
		if marked(m) {
			return 0
		}
		return 1
	}
	sorted := slices.Clone(machines)
	slices.SortFunc(sorted, func(a, b *clusterv1.Machine) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(domains[b.Spec.FailureDomain], domains[a.Spec.FailureDomain]),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return sorted
}

// TooMany are the Machines of which there are too many where there are more than are wanted: masters, if there are not
// more arbiters than there are to be.
func TooMany(f *facts.Facts) []*clusterv1.Machine {
	var arbiters, masters []*clusterv1.Machine
	for _, m := range f.Machines {
		if desired.IsArbiter(f, m) {
			arbiters = append(arbiters, m)
		} else {
			masters = append(masters, m)
		}
	}
	if len(arbiters) > int(f.Arbiters()) {
		return arbiters
	}
	return masters
}

// Missing is how many Machines are to be made. A Machine that is stuck counts as gone, but only one does: each may come
// back, and there is never more than one Machine too many.
func Missing(replicas, machines, stuck int) int {
	return max(0, replicas-machines+min(stuck, 1))
}

// marked reports whether the user wants a Machine to go before others.
func marked(m *clusterv1.Machine) bool {
	_, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]
	return marked
}

// Down is which Machine of an installed cluster goes next, and all that speaks against it now. Of those that the user
// did not mark, one goes first whose host is no member of etcd, or one that does not serve.
func Down(f *facts.Facts, situation *removal.Situation, etcd *facts.Etcd) (name string, against []decision.Blocker) {
	if blocker := removal.Unclear(etcd); blocker != nil {
		return "", []decision.Blocker{*blocker}
	}
	sorted := InOrder(TooMany(f))
	if last := slices.IndexFunc(sorted, func(m *clusterv1.Machine) bool { return !marked(m) }); last > 0 {
		sorted = sorted[:last]
	}
	var candidates []removal.Machine
	for _, m := range sorted {
		candidates = append(candidates, situation.Machines[slices.IndexFunc(situation.Machines, func(known removal.Machine) bool { return known.Name == m.Name })])
	}
	first := situation.First(candidates, etcd)
	return first.Name, append(situation.Against(first, etcd), upgrading(f)...)
}

// Up is all that speaks against making another Machine now.
func Up(f *facts.Facts, etcd *facts.Etcd) []decision.Blocker {
	if blocker := removal.Unclear(etcd); blocker != nil {
		return []decision.Blocker{*blocker}
	}
	against := removal.AgainstJoining(etcd)
	if len(etcd.Voters()) < leastVoters {
		return against
	}
	return append(append(against, removal.Unsettled(etcd)...), upgrading(f)...)
}

// upgrading is about an upgrade of the cluster, at the end of which its hosts are restarted.
func upgrading(f *facts.Facts) []decision.Blocker {
	switch {
	case !f.Workload.UnreadSince.IsZero():
		return []decision.Blocker{decision.Watch(controlplanev1.EtcdUnknownReason, "it cannot be read whether the cluster is being upgraded, see the condition Available")}
	case f.UpgradingTo() == "":
		return nil
	}
	return []decision.Blocker{decision.Watch(controlplanev1.UpgradeInProgressReason, "the cluster is being upgraded to %s: waiting until that is done. See ClusterVersion version of the cluster", f.UpgradingTo())}
}
