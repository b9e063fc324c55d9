package machines

import (
	"context"
	"slices"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/etcdmember"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
)

const (
	// etcdHealthOwner owns the condition EtcdMemberHealthy of Machines.
	etcdHealthOwner = writer.FieldOwner + "-etcd"
)

// MarkEtcdMembers writes the condition EtcdMemberHealthy of the Machines. It reads members only if they can
// change a condition. The etcd operator is watched, but names members only in free text.
func (w *ConditionWriter) MarkEtcdMembers(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.Installed() || s.ClusterDeleting() || s.Fenced() {
		return true, nil
	}
	last := w.gate.InspectMembers(ctx, s)
	s.Found.Etcd = last.Seen
	left := workload.GracePeriod - w.clock.Now().Sub(slices.MaxFunc([]time.Time{last.Read, w.Started}, time.Time.Compare))
	for i, m := range s.Found.Machines {
		wanted := etcdmember.Condition(s.Facts, m, last.Seen, left <= 0, w.clock.Now())
		if wanted == nil {
			continue
		}
		wanted.ObservedGeneration = m.Generation
		if err := w.set(ctx, s, i, *wanted, etcdHealthOwner); err != nil {
			return false, err
		}
	}
	if left > 0 && slices.ContainsFunc(s.Found.Machines, etcdgate.MemberIsDown) {
		s.Again.In(left)
	}
	return true, nil
}
