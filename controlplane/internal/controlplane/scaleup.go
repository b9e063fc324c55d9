package controlplane

import (
	"context"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scaling"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
)

// notConnected is why nothing is made or deleted in a cluster that does not answer.
const notConnected = "the cluster's API server does not answer, so that nothing is known of etcd: waiting until it does, see the condition Available"

// scaleUp makes the Machines that an installed cluster lacks, once etcd would take their hosts in: one that it does not
// take in would be installed in vain. Hosts leave etcd first, for it takes in none as long as a member is down.
func (r *Reconciler) scaleUp(ctx context.Context, s *scope) (bool, error) {
	switch {
	case s.missing == 0:
		return true, nil
	case s.Fenced():
		step := removal.Fenced("no Machine is made in the place of one that is gone")
		s.found.Block(status.ScaleUp, step.Reason, step.Message)
		return true, nil
	case !s.Workload.Connected:
		s.found.Block(status.ScaleUp, controlplanev1.ConnectionDownReason, notConnected)
		return true, nil
	}
	slots := s.freeSlots(s.missing)
	if len(slots) == 0 {
		return true, nil
	}
	end, may := r.mayInspect(s, status.ScaleUp)
	if !may {
		return true, nil
	}
	defer end()
	etcd, ok := r.observeEtcd(ctx, s, removal.Machine{})
	if !ok {
		return true, nil
	}
	against := scaling.Up(s.Facts, etcd)
	if plain := int(s.Replicas()) - len(s.Machines); s.missing > plain { // one more takes the place of a Machine that is stuck
		doubts := s.againstSuccessors(etcd)
		if plain > 0 && len(doubts) > 0 {
			slots, doubts = s.freeSlots(plain), nil
		}
		against = append(doubts, against...)
	}
	if len(against) > 0 {
		r.block(s, decision.Join(against))
		return true, nil
	}
	r.inspections.done(s.stored.UID, status.ScaleUp)
	return true, r.createMachines(ctx, s, slots)
}
