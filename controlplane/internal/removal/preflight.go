package removal

import (
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// First returns the Machine that is removed first if all are removed, see inOrder. Among equal Machines it is
// the first in the list.
func (a *Situation) First(machines []Machine, etcd *workload.Etcd) Machine {
	v := view{Situation: a, Etcd: etcd}
	return v.inOrder(machines)[0]
}

// Against returns all known blockers of the deletion of a Machine: they would keep its host.
func (a *Situation) Against(m Machine, etcd *workload.Etcd) []decision.Blocker {
	v := view{Situation: a, Etcd: etcd}
	own, doubt := v.memberOf(m)
	switch {
	case doubt != "":
		return []decision.Blocker{decision.Wait(controlplanev1.EtcdHostNotIdentifiedReason, "%s", doubt)}
	case own == nil:
		return nil
	}
	return v.against(*own)
}

// Unclear returns why no decision about etcd is possible: its state is unknown, or another controller
// decides. It returns nil if a decision is possible.
func Unclear(etcd *workload.Etcd) *decision.Blocker {
	return (&view{Situation: &Situation{}, Etcd: etcd}).foreign()
}

// AgainstJoining returns all that keeps OpenShift from adding another host to etcd, if Unclear finds nothing.
// OpenShift adds no member while one is down, and adds them one after the other.
func AgainstJoining(etcd *workload.Etcd) []decision.Blocker {
	if etcd.Topology == singleReplica {
		return []decision.Blocker{
			decision.Watch(
				controlplanev1.EtcdTopologyNotSupportedReason,
				"the cluster is made to run on a single node, which no other host can replace. For more hosts create another cluster; deleting "+
					"this Cluster wipes its host",
			),
		}
	}
	var against []decision.Blocker
	for _, a := range etcd.Alarms {
		against = append(
			against,
			decision.Wait(
				controlplanev1.EtcdAlarmReason,
				"etcd has the alarm %s, with which no host can join: see etcdctl alarm list %s, and etcdctl alarm disarm when its cause is fixed",
				short(a.Kind),
				inEtcdPod,
			),
		)
	}
	for _, m := range etcd.Members {
		switch {
		case !m.Healthy():
			against = append(
				against,
				decision.Wait(
					controlplanev1.EtcdQuorumAtRiskReason,
					"etcd member %s %s, and OpenShift takes in no other meanwhile: repair its host, or delete its Machine, "+
						"which wipes the host; another takes its place",
					nameOf(m),
					m.Problem,
				),
			)
		case m.Learner:
			against = append(
				against,
				decision.Wait(controlplanev1.WaitingForEtcdReason, "etcd member %s is joining: waiting until it votes", nameOf(m)),
			)
		}
	}
	return against
}

// Unsettled returns the operations that restart members.
func Unsettled(etcd *workload.Etcd) []decision.Blocker {
	v, none := view{Situation: &Situation{}, Etcd: etcd}, workload.EtcdMember{}
	var going []decision.Blocker
	for _, check := range []func(workload.EtcdMember) *decision.Blocker{v.settled, v.configured} {
		if blocker := check(none); blocker != nil {
			going = append(going, *blocker)
		}
	}
	return going
}
