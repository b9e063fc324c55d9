// Package etcdmember computes the condition EtcdMemberHealthy of control-plane Machines. It has no client, and no clock.
package etcdmember

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// Reported reports whether a Machine has the condition EtcdMemberHealthy. A Machine that is being
// deleted keeps its condition.
func Reported(f *facts.Facts, m *clusterv1.Machine) bool {
	return !f.Fenced() && f.Installed() && m.DeletionTimestamp.IsZero() && m.Status.NodeRef.IsDefined()
}

// NeedsInspection reports whether the members have to be read. They are read while the operator is degraded,
// while a member was reported as down, and until each host was seen as a member. A settled operator does not
// prove that each host is a member: a host may not have been added yet.
func NeedsInspection(f *facts.Facts, machines []*clusterv1.Machine) bool {
	const t = controlplanev1.EtcdMemberHealthyCondition
	etcd := f.Workload.Etcd
	return f.Workload.Connected && etcd.Known && (!etcd.DegradedSince.IsZero() ||
		slices.ContainsFunc(machines, func(m *clusterv1.Machine) bool {
			return Reported(f, m) && (conditions.IsFalse(m, t) || etcd.Settled() && !conditions.IsTrue(m, t))
		}))
}

// Condition returns the condition EtcdMemberHealthy of a Machine, or nil to keep the condition that the Machine has.
// seen holds the answers of the members, nil while they are not known; stale reports that they have not been known for
// the grace period. Without answers a True stays. A False does not outlive its evidence: a MachineHealthCheck would
// have a healthy host replaced. A planned restart of the host is no loss, see restartLeft.
func Condition(f *facts.Facts, m *clusterv1.Machine, seen *workload.Etcd, stale bool, now time.Time) *metav1.Condition {
	const t = controlplanev1.EtcdMemberHealthyCondition
	var c metav1.Condition
	switch {
	case !Reported(f, m):
		return nil
	case seen != nil && seen.Readable():
		c = observed(m.Status.NodeRef.Name, seen)
		if c.Status == metav1.ConditionFalse && restartLeft(f, m, seen, now) > 0 {
			c = condition.Unknown(t, controlplanev1.EtcdMemberHealthUnknownReason, fmt.Sprintf("etcd member %s does not serve while its host "+
				"may restart for an update. Waiting up to %d minutes; after that it counts as not healthy",
				m.Status.NodeRef.Name, int(workload.RestartTime(1).Minutes())))
		}
	case !conditions.IsFalse(m, t):
		return nil
	case f.Workload.Connected && f.Workload.Etcd.Settled():
		c = condition.Unknown(
			t,
			controlplanev1.EtcdMemberHealthUnknownReason,
			"ClusterOperator etcd reports no problem any more, and the member could not be read since",
		)
	case stale:
		c = condition.Unknown(
			t, controlplanev1.EtcdMemberHealthUnknownReason, fmt.Sprintf("the member could not be read for %s", workload.GracePeriod),
		)
	default:
		return nil
	}
	return &c
}

// restartLeft returns the time that a planned restart of its host still explains a failing member.
// Zero: no restart explains the failure. The host restarts while the cluster is being upgraded, or while its
// Node gets another machine configuration: see condition.UnknownLeft.
func restartLeft(f *facts.Facts, m *clusterv1.Machine, seen *workload.Etcd, now time.Time) time.Duration {
	node := seen.Node(m.Status.NodeRef.Name)
	if versioning.UpgradingTo(f) == "" && (node == nil || !node.Configuring) {
		return 0
	}
	return condition.UnknownLeft(conditions.Get(m, controlplanev1.EtcdMemberHealthyCondition), workload.RestartTime(1), now)
}

// observed reports the member of a Node. The condition is False only if the member does not answer
// here and the etcd operator names it as unhealthy. One observation alone may be the fault of a kubelet, or
// outdated. A missing or joining member is not reported as down: OpenShift adds no member while another is
// down. Its host must not be replaced for that. A member that a former host of the same name left behind does
// not condemn the present host.
func observed(node string, seen *workload.Etcd) metav1.Condition {
	const t = controlplanev1.EtcdMemberHealthyCondition
	notKnown := func(format string, args ...any) metav1.Condition {
		return condition.Unknown(t, controlplanev1.EtcdMemberHealthUnknownReason, fmt.Sprintf(format, args...))
	}
	named := func(member workload.EtcdMember) bool { return member.Name == node }
	at := slices.IndexFunc(seen.Members, named)
	switch {
	case at < 0:
		return notKnown("Node %s has no etcd member", node)
	case slices.ContainsFunc(seen.Members[at+1:], named):
		return notKnown("several etcd members are named %s", node)
	case seen.Members[at].Learner:
		return notKnown("etcd member %s is joining", node)
	case seen.Members[at].Healthy():
		return condition.True(t, controlplanev1.EtcdMemberHealthyReason)
	case !seen.Condemns(node):
		return notKnown("etcd member %s %s, but the etcd operator does not report it as unhealthy", node, seen.Members[at].Problem)
	default:
		return condition.False(
			t,
			controlplanev1.EtcdMemberNotHealthyReason,
			fmt.Sprintf("etcd member %s %s, and the etcd operator reports it as unhealthy", node, seen.Members[at].Problem),
		)
	}
}
