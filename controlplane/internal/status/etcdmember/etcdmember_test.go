package etcdmember

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/installationstate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

func TestEtcdMemberHealthy(t *testing.T) {
	const t1 = controlplanev1.EtcdMemberHealthyCondition
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	down := workload.EtcdMember{Name: "n0", Problem: "does not answer"}
	others := []workload.EtcdMember{{Name: "n1"}, {Name: "n2"}}
	configuring := func(e *workload.Etcd) {
		e.Nodes = []workload.ControlPlaneNode{{Node: workload.Node{Name: "n0"}, Configuring: true}}
	}
	otherConfiguring := func(e *workload.Etcd) {
		e.Nodes = []workload.ControlPlaneNode{{Node: workload.Node{Name: "n0"}}, {Node: workload.Node{Name: "n1"}, Configuring: true}}
	}
	unknownFor := func(lasts time.Duration) func(*facts.Facts) {
		return func(f *facts.Facts) {
			conditions.Set(f.Machines[0], metav1.Condition{
				Type: t1, Status: unknown, Reason: "Before", LastTransitionTime: metav1.NewTime(noon.Add(-lasts)),
			})
		}
	}
	settled := func(f *facts.Facts) { f.Workload.Etcd.DegradedSince = time.Time{} }
	for situation, tc := range map[string]struct {
		before    metav1.ConditionStatus
		change    func(*facts.Facts)
		members   []workload.EtcdMember
		condemned string
		seen      func(*workload.Etcd)
		stale     bool
		status    metav1.ConditionStatus // empty: the condition of the Machine stays
	}{
		"the member serves":                              {members: append(others, workload.EtcdMember{Name: "n0"}), status: yes},
		"the operator reports no problem: no proof":      {change: settled},
		"the operator reports no problem, no member yet": {change: settled, members: others, status: unknown},
		"the member is down": {
			members: append(others, down), condemned: "2 of 3 members are available, n0 is unhealthy", status: no,
		},
		"the member and another one are down": {
			members: append(others, down), condemned: "1 of 3 members are available, n1 is unhealthy, n0 is unhealthy", status: no,
		},
		"down, but healthy for the operator": {members: append(others, down), status: unknown},
		"the operator names another member with the same prefix": {
			members: append(others, down), condemned: "2 of 3 members are available, n0.example is unhealthy", status: unknown,
		},
		"the operator names the member, but it serves": {
			members: append(others, workload.EtcdMember{Name: "n0"}), condemned: "2 of 3 members are available, n0 is unhealthy", status: yes,
		},
		"host restarts for a new configuration: not replaced": {
			before: yes, members: append(others, down), condemned: "n0 is unhealthy", seen: configuring, status: unknown,
		},
		"host restarts, nothing reported before": {
			members: append(others, down), condemned: "n0 is unhealthy", seen: configuring, status: unknown,
		},
		"host restarts for less than an hour": {
			change: unknownFor(59 * time.Minute), members: append(others, down), condemned: "n0 is unhealthy", seen: configuring, status: unknown,
		},
		"host restarts for an hour: down": {
			change: unknownFor(time.Hour), members: append(others, down), condemned: "n0 is unhealthy", seen: configuring, status: no,
		},
		"down before the planned restart": {
			before: no, members: append(others, down), condemned: "n0 is unhealthy", seen: configuring, status: no,
		},
		"the host of another member restarts": {
			before: yes, members: append(others, down), condemned: "n0 is unhealthy", seen: otherConfiguring, status: no,
		},
		"the cluster is being upgraded": {
			before:    yes,
			change:    func(f *facts.Facts) { f.Workload.Upgrading = "4.20.1" },
			members:   append(others, down),
			condemned: "n0 is unhealthy",
			status:    unknown,
		},
		"another member is down": {
			members: []workload.EtcdMember{{Name: "n0"}, {Name: "n1", Problem: "does not answer"}}, condemned: "n1 is unhealthy", status: yes,
		},
		"a former host of the same name left a member: unknown": {
			members: []workload.EtcdMember{down, {Name: "n0"}}, condemned: "n0 is unhealthy", status: unknown,
		},
		"joining: unknown, so that the host is not replaced": {
			members: []workload.EtcdMember{{Name: "n0", Learner: true, Problem: "does not answer"}}, condemned: "n0 is unhealthy", status: unknown,
		},
		"members restart, nothing read: unchanged": {
			change: func(f *facts.Facts) { settled(f); f.Workload.Etcd.Progressing = true }, before: no,
		},
		"nothing read: unchanged":                        {before: no},
		"nothing read for long: no longer down":          {before: no, stale: true, status: unknown},
		"nothing read for long: still healthy":           {before: yes, stale: true},
		"operator settled, nothing read":                 {before: no, change: settled, status: unknown},
		"operator settled, nothing read: still healthy":  {before: yes, change: settled},
		"connection lost while the operator was settled": {before: no, change: func(f *facts.Facts) { settled(f); f.Workload.Connected = false }},
		"members disagree: unchanged": {
			members: []workload.EtcdMember{down}, condemned: "n0 is unhealthy", seen: func(e *workload.Etcd) { e.Doubt = "doubt" }, before: yes,
		},
		"etcd lost its quorum: unchanged": {
			members: []workload.EtcdMember{down}, condemned: "n0 is unhealthy", seen: func(e *workload.Etcd) { e.Lost = true }, before: yes,
		},
		"no member answered: unchanged": {members: []workload.EtcdMember{}, before: yes},
		"Pacemaker runs etcd: unchanged": {
			members:   []workload.EtcdMember{down},
			condemned: "n0 is unhealthy",
			seen:      func(e *workload.Etcd) { e.Topology = configv1.DualReplicaTopologyMode },
			before:    yes,
		},
		"Machine is being deleted: unchanged": {
			change:    func(f *facts.Facts) { f.Machines[0].DeletionTimestamp = ptr.To(metav1.Now()) },
			members:   []workload.EtcdMember{down},
			condemned: "n0 is unhealthy",
		},
		"Machine has no Node: unchanged": {
			change:  func(f *facts.Facts) { f.Machines[0].Status.NodeRef.Name = "" },
			members: []workload.EtcdMember{down}, condemned: "n0 is unhealthy",
		},
		"two nodes with fencing: never reported": {
			change:    func(f *facts.Facts) { f.ControlPlane.Spec.Fencing = &controlplanev1.FencingSpec{} },
			members:   []workload.EtcdMember{down},
			condemned: "n0 is unhealthy",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			f := runningEtcd()
			installationstate.Decide(f)
			f.Phase, f.Workload.Etcd.DegradedSince = controlplanev1.InstallationInstalled, noon
			if tc.before != "" {
				conditions.Set(f.Machines[0], metav1.Condition{Type: t1, Status: tc.before, Reason: "Before"})
			}
			if tc.change != nil {
				tc.change(f)
			}
			var seen *workload.Etcd
			if tc.members != nil {
				seen = &workload.Etcd{Topology: configv1.HighlyAvailableTopologyMode, Members: tc.members, Condemned: tc.condemned}
				if tc.seen != nil {
					tc.seen(seen)
				}
			}
			c := Condition(f, f.Machines[0], seen, tc.stale, noon)
			if tc.status == "" {
				g.Expect(c).To(BeNil())
				return
			}
			g.Expect(c).NotTo(BeNil())
			g.Expect(c.Status).To(Equal(tc.status))
		})
	}
}

func TestInspectsMembers(t *testing.T) {
	const t1 = controlplanev1.EtcdMemberHealthyCondition
	for situation, tc := range map[string]struct {
		before metav1.ConditionStatus
		change func(*facts.Facts)
		read   bool
	}{
		"all hosts are members, operator settled": {before: metav1.ConditionTrue},
		"the operator is degraded": {
			before: metav1.ConditionTrue, change: func(f *facts.Facts) { f.Workload.Etcd.DegradedSince = noon }, read: true,
		},
		"the cluster does not answer": {
			change: func(f *facts.Facts) { f.Workload.Etcd.DegradedSince, f.Workload.Connected = noon, false },
		},
		"one host was never seen as a member":                  {read: true},
		"one host was never seen as a member, members restart": {change: func(f *facts.Facts) { f.Workload.Etcd.Progressing = true }},
		"one member was unknown":                               {before: metav1.ConditionUnknown, read: true},
		"one member was down, members restart": {
			before: metav1.ConditionFalse, change: func(f *facts.Facts) { f.Workload.Etcd.Progressing = true }, read: true,
		},
		"the host that was never a member has no Node yet": {change: func(f *facts.Facts) { f.Machines[0].Status.NodeRef.Name = "" }},
		"the operator is missing":                          {change: func(f *facts.Facts) { f.Workload.Etcd = workload.EtcdOperator{} }},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			f := runningEtcd()
			installationstate.Decide(f)
			f.Phase = controlplanev1.InstallationInstalled
			if tc.before != "" {
				conditions.Set(f.Machines[0], metav1.Condition{Type: t1, Status: tc.before, Reason: "Before"})
			}
			if tc.change != nil {
				tc.change(f)
			}
			g.Expect(NeedsInspection(f, f.Machines)).To(Equal(tc.read))
		})
	}
}
