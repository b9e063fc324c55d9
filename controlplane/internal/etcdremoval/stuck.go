package etcdremoval

import (
	"context"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/replicas"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// FindStuck finds the Machines whose hosts left etcd, but whose infrastructure is not deleted, for example
// because of a dead BMC. The creation of Machines counts them as deleted. It does not count the Machine of an
// arbiter: its name is unique, and a master cannot replace an arbiter.
func (r *Remover) FindStuck(_ context.Context, s *scope.Scope) (bool, error) {
	if !s.Installed() || s.ClusterDeleting() || s.Fenced() || s.Replicas() < 2 || !removal.Needed(s.Facts) {
		return true, nil
	}
	situation, err := s.Removal()
	if err != nil {
		return true, nil //nolint:nilerr // CleanUp reports the invalid record
	}
	stuck, next := situation.Stuck(r.clock.Now())
	s.Again.In(next)
	s.Stuck = stuck
	for _, m := range stuck {
		if machine := machineNamed(s, m.Name); !desired.IsArbiter(s.Facts, machine) && !desired.LostArbiterRole(s.Facts, machine) {
			s.Found.Stuck++
		}
	}
	return true, nil
}

// machineNamed returns the Machine of the control plane with a name that facts of this reconcile contain.
func machineNamed(s *scope.Scope, name string) *clusterv1.Machine {
	return s.Machines[slices.IndexFunc(s.Machines, func(m *clusterv1.Machine) bool { return m.Name == name })]
}

// AgainstSuccessors returns the reasons not to create another Machine in the place of a stuck one.
func AgainstSuccessors(s *scope.Scope, etcd *workload.Etcd) []decision.Blocker {
	situation, err := s.Removal()
	if err != nil {
		return []decision.Blocker{decision.Watch(controlplanev1.InvalidConfigurationReason, "%s", err)}
	}
	var against []decision.Blocker
	for _, m := range s.Stuck {
		against = append(against, situation.AgainstSuccessor(m, etcd)...)
	}
	return against
}

// ReportStuck reports the first stuck Machine and the remedy. This takes precedence over the report that
// other Machines wait for its deletion.
func (r *Remover) ReportStuck(_ context.Context, s *scope.Scope) (bool, error) {
	blocked := s.Found.Blocked(tasks.HostRelease)
	if len(s.Stuck) == 0 || blocked != nil && blocked.Reason != controlplanev1.WaitingForMachinesDeletionReason {
		return true, nil
	}
	s.Found.Block(tasks.HostRelease, controlplanev1.InfrastructureDeletionStuckReason, replicas.Stuck(machineNamed(s, s.Stuck[0].Name)))
	return true, nil
}
