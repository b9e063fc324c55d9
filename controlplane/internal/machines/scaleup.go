package machines

import (
	"context"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdremoval"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scaling"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
)

// ScaleUp creates the Machines that an installed cluster lacks, as soon as etcd would add their hosts. The
// installation of a host that etcd does not add would be in vain. Hosts leave etcd first, because etcd adds
// none while a member is down.
func (c *Creator) ScaleUp(ctx context.Context, s *scope.Scope) (bool, error) {
	switch {
	case s.Missing == 0:
		return true, nil
	case s.Fenced():
		step := removal.Fenced("a deleted Machine is not replaced")
		s.Found.Block(tasks.ScaleUp, step.Reason, step.Message)
		return true, nil
	case !s.Workload.Connected:
		s.Found.Block(tasks.ScaleUp, controlplanev1.ConnectionDownReason, scope.NotConnected)
		return true, nil
	}
	slots := freeSlots(s, s.Missing)
	if len(slots) == 0 {
		return true, nil
	}
	inspection := c.gate.Begin(s, tasks.ScaleUp)
	if inspection == nil {
		return true, nil
	}
	defer inspection.End()
	etcd := inspection.Etcd(ctx, quorum.Machine{})
	if etcd == nil {
		return true, nil
	}
	against := scaling.Up(s.Facts, etcd)
	if regular := int(s.Replicas()) - len(s.Machines); s.Missing > regular { // the others replace stuck Machines
		doubts := etcdremoval.AgainstSuccessors(s, etcd)
		if regular > 0 && len(doubts) > 0 {
			slots, doubts = freeSlots(s, regular), nil
		}
		against = append(doubts, against...)
	}
	if len(against) > 0 {
		inspection.Block(decision.Join(against))
		return true, nil
	}
	c.gate.Done(s, tasks.ScaleUp)
	return true, c.create(ctx, s, slots)
}
