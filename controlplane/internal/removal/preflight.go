package removal

import (
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// First returns the Machine that is removed first if all are removed, see inOrder. Among equal Machines it is
// the first in the list.
func (a *Situation) First(machines []quorum.Machine, etcd *workload.Etcd) quorum.Machine {
	v := view{Situation: a, Etcd: etcd}
	return v.inOrder(machines)[0]
}

// Against returns all known blockers of the deletion of a Machine: they would keep its host.
func (a *Situation) Against(m quorum.Machine, etcd *workload.Etcd) []decision.Blocker {
	v := view{Situation: a, Etcd: etcd}
	own, doubt := v.memberOf(m)
	switch {
	case doubt != "":
		return []decision.Blocker{decision.Wait(controlplanev1.EtcdHostNotIdentifiedReason, "%s", doubt)}
	case own == nil:
		return nil
	}
	return v.quorum().Against(*own)
}
