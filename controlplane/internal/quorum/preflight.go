package quorum

import (
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// AgainstJoining returns all that blocks OpenShift from adding another host to etcd, if Unclear finds nothing.
// OpenShift adds no member while one is down, and adds them one after the other.
func AgainstJoining(etcd *workload.Etcd) []decision.Blocker {
	if etcd.Topology == singleReplica {
		return []decision.Blocker{
			decision.Watch(
				controlplanev1.EtcdTopologyNotSupportedReason,
				"the cluster is a single-node cluster, whose host no other host can replace. For more hosts create another cluster; deleting this "+
					"Cluster wipes its host",
			),
		}
	}
	var against []decision.Blocker
	for _, a := range etcd.Alarms {
		against = append(
			against,
			decision.Wait(
				controlplanev1.EtcdAlarmReason,
				"etcd has the alarm %s, so no host can join: see etcdctl alarm list %s, and etcdctl alarm disarm when its cause is fixed",
				Shorten(a.Kind),
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
					"etcd member %s %s, and OpenShift adds no other member until then: repair its host, or delete its Machine, which wipes the host; "+
						"another Machine replaces it",
					NameOf(m),
					m.Problem,
				),
			)
		case m.Learner:
			against = append(
				against,
				decision.Wait(controlplanev1.WaitingForEtcdReason, "etcd member %s is joining: waiting until it votes", NameOf(m)),
			)
		}
	}
	return against
}

// Unsettled returns the operations that restart members.
func Unsettled(etcd *workload.Etcd) []decision.Blocker {
	v, none := View{Etcd: etcd}, workload.EtcdMember{}
	var going []decision.Blocker
	for _, check := range []func(workload.EtcdMember) *decision.Blocker{v.settled, v.configured} {
		if blocker := check(none); blocker != nil {
			going = append(going, *blocker)
		}
	}
	return going
}

// Unclear returns why no decision about etcd is possible: its state is unknown, or another controller
// decides. It returns nil if a decision is possible.
func Unclear(etcd *workload.Etcd) *decision.Blocker {
	var blocker decision.Blocker
	switch {
	case etcd.Lost:
		blocker = Lost()
	case etcd.Topology == "":
		blocker = decision.Wait(
			controlplanev1.EtcdUnknownReason,
			"the cluster does not report the topology of its control plane: see status of Infrastructure cluster",
		)
	case !etcd.InPods():
		blocker = decision.Watch(
			controlplanev1.EtcdTopologyNotSupportedReason,
			"the control plane has the topology %q, whose etcd members the provider does not change: remove the member of this host, if it has "+
				"one, as OpenShift documents it for that topology, then remove the annotation %s from the Machine",
			Shorten(string(etcd.Topology)),
			controlplanev1.EtcdMemberHookAnnotation,
		)
	case etcd.Doubt != "":
		blocker = decision.Wait(
			controlplanev1.EtcdUnknownReason,
			"%s. If the state persists, compare the output of etcdctl member list in each Pod with the label app=etcd in namespace openshift-etcd "+
				"of the cluster",
			etcd.Doubt,
		)
	case len(etcd.Members) == 0:
		blocker = decision.Wait(
			controlplanev1.EtcdUnknownReason,
			"no etcd member answers: see the Pods with the label app=etcd in namespace openshift-etcd of the cluster. If etcd has lost its quorum, "+
				"restore it as OpenShift documents it",
		)
	default:
		return nil
	}
	return &blocker
}

// Lost waits until etcd serves again.
func Lost() decision.Blocker {
	return decision.Wait(
		controlplanev1.EtcdQuorumAtRiskReason,
		"etcd does not serve the API server of the cluster, it has most likely lost its quorum. Repair the hosts of its members. If that is "+
			"impossible, restore etcd as OpenShift documents it. Until then no member is removed",
	)
}
