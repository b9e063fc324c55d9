// Package scaling decides which control plane Machine is deleted when there are too many, and whether
// Machines may be added to an installed cluster. It computes and has no client. Package removal decides that
// a host leaves etcd before its deletion.
package scaling

import (
	"cmp"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// minVoters is the number of voting members that survives the loss of a host. While there are fewer, only
// etcd may delay another host.
const minVoters = 3

// InOrder returns Machines in the order of their deletion when there are too many. Machines with the
// annotation cluster.x-k8s.io/delete-machine are first. The newest Machines of the failure domains with the
// most Machines follow.
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

// TooMany returns the Machines that can be deleted when there are too many: arbiters if there are more than
// desired, else masters.
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

// Missing returns how many Machines to create. One stuck Machine counts as missing. Others do not, because
// they may recover, and at most one Machine may be surplus.
func Missing(replicas, machines, stuck int) int {
	return max(0, replicas-machines+min(stuck, 1))
}

// marked reports whether the user marked a Machine for deletion.
func marked(m *clusterv1.Machine) bool {
	_, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]
	return marked
}

// Down returns the Machine of an installed cluster that is deleted next, and all current blockers. Marked
// Machines are first. Of the others, those whose host is no member of etcd, or an unhealthy one, are first.
func Down(f *facts.Facts, situation *removal.Situation, etcd *workload.Etcd) (name string, against []decision.Blocker) {
	if blocker := quorum.Unclear(etcd); blocker != nil {
		return "", []decision.Blocker{*blocker}
	}
	sorted := InOrder(TooMany(f))
	if last := slices.IndexFunc(sorted, func(m *clusterv1.Machine) bool { return !marked(m) }); last > 0 {
		sorted = sorted[:last]
	}
	var candidates []quorum.Machine
	for _, m := range sorted {
		candidates = append(candidates, situation.Machines[slices.IndexFunc(situation.Machines,
			func(known quorum.Machine) bool { return known.Name == m.Name })])
	}
	first := situation.First(candidates, etcd)
	return first.Name, append(situation.Against(first, etcd), upgrading(f)...)
}

// Up returns all current blockers of another Machine.
func Up(f *facts.Facts, etcd *workload.Etcd) []decision.Blocker {
	if blocker := quorum.Unclear(etcd); blocker != nil {
		return []decision.Blocker{*blocker}
	}
	against := quorum.AgainstJoining(etcd)
	if len(etcd.Voters()) < minVoters {
		return against
	}
	return append(append(against, quorum.Unsettled(etcd)...), upgrading(f)...)
}

// upgrading blocks during an upgrade of the cluster, which restarts its hosts.
func upgrading(f *facts.Facts) []decision.Blocker {
	switch {
	case !f.Workload.UnreadSince.IsZero():
		return []decision.Blocker{decision.Watch(controlplanev1.HealthUnknownReason,
			"the state of upgrades of the cluster cannot be read, see the condition Available")}
	case versioning.UpgradingTo(f) == "":
		return nil
	}
	return []decision.Blocker{decision.Watch(controlplanev1.UpgradeInProgressReason,
		"the cluster is being upgraded to %s: waiting for the end of the upgrade. See ClusterVersion version of the cluster",
		versioning.UpgradingTo(f))}
}
