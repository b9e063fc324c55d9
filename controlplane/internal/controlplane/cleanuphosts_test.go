package controlplane

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdremoval"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// newLeavingHub returns a hub whose first host was released, and is not off yet.
func newLeavingHub(t *testing.T) (h *hub, now *time.Time, going string) {
	t.Helper()
	h = newInstalledHub(t)
	begin := time.Now()
	now = &begin
	h.clock.now = func() time.Time { return *now }
	going = h.deleteMachine(0)
	h.reconcile()
	h.Expect(h.held()).NotTo(ContainElement(going))
	h.etcds.calls, h.etcds.inspections = nil, 0
	return h, now, going
}

// rejoin makes the first host a member again.
func (h *hub) rejoin(change func(m *workload.EtcdMember)) {
	m := workload.EtcdMember{ID: 9, Name: "n0", Hosts: []string{"n0"}}
	change(&m)
	h.etcds.Members = append(h.etcds.Members, m)
}

func TestReleasedHostThatRejoinsBeforeItIsOffIsRemoved(t *testing.T) {
	for situation, tc := range map[string]struct {
		change  func(h *hub)
		calls   []string
		message string
	}{
		"it does not rejoin": {func(*hub) {}, nil, ""},
		"it rejoins as a learner": {func(h *hub) {
			h.rejoin(func(m *workload.EtcdMember) { m.Learner = true })
		}, []string{"remove n0 through n1"}, ""},
		"it rejoins as a voter": {func(h *hub) { h.rejoin(func(*workload.EtcdMember) {}) }, []string{"remove n0 through n1"}, ""},
		"it has rejoined and is off": {
			func(h *hub) { h.rejoin(func(m *workload.EtcdMember) { m.Problem = "does not answer" }) }, []string{"remove n0 through n1"}, "",
		},
		"it has rejoined and leads": {func(h *hub) {
			h.rejoin(func(m *workload.EtcdMember) { m.Leader = true })
			h.etcds.Members[0].Leader = false
		}, []string{"lead n1 instead of n0"}, ""},
		"it has rejoined while another member does not answer": {func(h *hub) {
			h.rejoin(func(*workload.EtcdMember) {})
			h.etcds.Members[1].Problem = "does not answer"
		}, nil, "its host may be in etcd again: without it etcd would have no quorum"},
		"it has rejoined and cannot be removed": {func(h *hub) {
			h.rejoin(func(*workload.EtcdMember) {})
			h.etcds.changing = errors.New("secret of a server")
		}, []string{"remove n0 through n1"}, "cannot query etcd: see the log of the manager. The provider retries"},
		"etcd cannot be read": {func(h *hub) { h.etcds.observing = errors.New("secret of a server") }, nil, ""},
	} {
		t.Run(situation, func(t *testing.T) {
			h, now, going := newLeavingHub(t)
			tc.change(h)
			h.Expect(h.reconcile().RequeueAfter).To(Equal(etcdgate.InitialBackgroundDelay))
			h.Expect(h.etcds.inspections).To(BeZero(), "etcd was inspected a moment ago")
			*now = now.Add(etcdgate.InitialBackgroundDelay)
			h.Expect(h.reconcile().RequeueAfter).To(Equal(etcdgate.InitialBackgroundDelay))
			h.Expect(h.etcds.inspections).To(Equal(1))
			h.Expect(h.etcds.calls).To(Equal(tc.calls))
			c := conditions.Get(h.controlPlane(), controlplanev1.HostsReleasingCondition)
			if tc.message == "" {
				h.Expect(c.Reason).To(Equal(controlplanev1.HostsReleasingReason))
			} else {
				h.Expect(c.Message).To(
					And(HavePrefix("Machine "+going+" is being removed"), ContainSubstring(tc.message), Not(ContainSubstring("secret of a server"))),
				)
			}
			*now = now.Add(etcdgate.InitialBackgroundDelay / 2)
			h.reconcile()
			h.Expect(h.etcds.inspections).To(Equal(1), "events trigger no inspection")
			if len(h.etcds.Members) == 2 && tc.calls != nil {
				h.Expect(h.controlPlane().Annotations[controlplanev1.ReleasedHostsAnnotation]).To(ContainSubstring(`"members":["1","9"]`))
			}
		})
	}
}

func TestChecksOfReleasedHostEnd(t *testing.T) {
	h, now, going := newLeavingHub(t)
	h.reconcile()
	for _, after := range []time.Duration{10 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second} {
		*now = now.Add(after)
		h.reconcile()
	}
	h.Expect(h.etcds.inspections).To(Equal(4))
	for range 2 * etcdremoval.MaxLeavingChecks {
		*now = now.Add(etcdgate.MaxDelay)
		h.reconcile()
	}
	h.Expect(h.etcds.inspections).To(Equal(etcdremoval.MaxLeavingChecks), "a host that is not off by then will not be soon")
	h.Expect(h.reconcile().RequeueAfter).To(Or(BeZero(), BeNumerically(">", time.Hour)))

	h.finishMachine(going)
	h.reconcile()
	h.Expect(h.etcds.calls).To(Equal([]string{"delete Secrets of n0"}), "but the last step inspects etcd")
}

// A host whose BMC is dead may run on for ever.
func TestChecksOfReleasedHostWhoseKubeletReportsDoNotEnd(t *testing.T) {
	h, now, going := newLeavingHub(t)
	m := &clusterv1.Machine{}
	h.get(going, m)
	conditions.Set(m, metav1.Condition{
		Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineNodeReadyReason,
	})
	h.Expect(h.Status().Update(t.Context(), m)).To(Succeed())
	h.reconcile()
	for range 2 * etcdremoval.MaxLeavingChecks {
		*now = now.Add(etcdgate.MaxDelay)
		h.reconcile()
	}
	h.Expect(h.etcds.inspections).To(BeNumerically(">", etcdremoval.MaxLeavingChecks))
	h.rejoin(func(*workload.EtcdMember) {})
	*now = now.Add(etcdgate.MaxDelay)
	h.reconcile()
	h.Expect(h.etcds.Members).To(HaveLen(2), "the member is removed again")
}

// A host that rejoined once may do so again soon.
func TestReleasedHostThatRejoinsLateIsRemoved(t *testing.T) {
	for what, lead := range map[string]bool{"it is removed": false, "it has rejoined and leads": true} {
		t.Run(what, func(t *testing.T) {
			h, now, _ := newLeavingHub(t)
			for range 10 {
				h.reconcile()
				*now = now.Add(etcdgate.MaxDelay)
			}
			h.rejoin(func(m *workload.EtcdMember) { m.Leader = lead })
			h.etcds.Members[0].Leader = !lead
			h.Expect(h.reconcile().RequeueAfter).To(Equal(etcdgate.InitialBackgroundDelay))
			h.Expect(h.etcds.calls).To(HaveLen(1))
			*now = now.Add(etcdgate.InitialBackgroundDelay)
			h.reconcile()
			h.Expect(h.etcds.Members).To(HaveLen(2))
		})
	}
}

// A host that has rejoined is inspected as long as its removal is blocked.
func TestChecksOfRejoinedHostDoNotEnd(t *testing.T) {
	h, now, _ := newLeavingHub(t)
	h.reconcile()
	h.rejoin(func(*workload.EtcdMember) {})
	h.etcds.Members[1].Problem = "does not answer"
	for range 2 * etcdremoval.MaxLeavingChecks {
		*now = now.Add(etcdgate.MaxDelay)
		h.reconcile()
	}
	h.Expect(h.etcds.inspections).To(Equal(2 * etcdremoval.MaxLeavingChecks))
}

func TestBlockerOfTheNextHostIsReportedWithTheReleasedHost(t *testing.T) {
	h, now, going := newLeavingHub(t)
	h.reconcile()
	h.deleteMachine(1)
	h.rejoin(func(*workload.EtcdMember) {})
	h.etcds.Members[1].Problem = "does not answer"
	*now = now.Add(etcdgate.InitialBackgroundDelay)
	h.reconcile()
	h.endDeferral()
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.HostsReleasingCondition)).To(
		HavePrefix("Machine " + going + " is being removed, and its host may be in etcd again"),
	)
}

// A host that boots only after its release is recognized by the record of its Machine.
func TestHostThatBootsAfterItsReleaseIsRemoved(t *testing.T) {
	h := newInstalledHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	n0 := h.etcds.Nodes[0]
	h.etcds.Members[0].Leader, h.etcds.Members[1].Leader = false, true
	late := h.etcds.Members[0]
	h.etcds.Members, h.etcds.Nodes, h.etcds.Revisions, h.workloads.facts.Nodes = h.etcds.Members[1:],
		h.etcds.Nodes[1:], h.etcds.Revisions[1:], h.workloads.facts.Nodes[1:]
	m := h.machines()[0]
	m.Status.NodeRef.Name = ""
	h.Expect(h.Status().Update(t.Context(), &m)).To(Succeed())
	going := h.deleteMachine(0)
	h.reconcile()
	h.Expect(h.held()).NotTo(ContainElement(going))
	h.Expect(h.recorded()).To(Equal(fmt.Sprintf(`[{"machine":%q,"providerID":"metal3://n0"}]`, going)))

	h.reconcile()
	h.etcds.Nodes, h.workloads.facts.Nodes = append(h.etcds.Nodes, n0), append(h.workloads.facts.Nodes, n0.Node)
	h.etcds.Members = append(h.etcds.Members, late)
	now = now.Add(etcdgate.InitialBackgroundDelay)
	h.reconcile()
	h.Expect(h.etcds.calls).To(Equal([]string{"remove n0 through n1"}))
	h.Expect(h.recorded()).To(Equal(recordOf(going)))

	h.etcds.calls = nil
	h.get(going, &m)
	m.Finalizers = nil
	h.Expect(h.Update(t.Context(), &m)).To(Succeed())
	h.endDeferral()
	h.reconcile()
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.HostsReleasingCondition)).To(
		ContainSubstring("Node n0 still exists although its Machine was deleted"),
	)
	h.Expect(h.etcds.calls).To(BeEmpty())
}

// leaveNode releases the first host. It acts as Cluster API does when all control-plane Machines are deleted
// at once: the Node stays.
func (h *hub) leaveNode() {
	h.t.Helper()
	node, known := h.etcds.Nodes[0], h.workloads.facts.Nodes[0]
	h.release(0)
	node.Silent = true
	h.etcds.Nodes, h.workloads.facts.Nodes = append(h.etcds.Nodes, node), append(h.workloads.facts.Nodes, known)
}

func TestNodeThatClusterAPILeftBehindIsDeleted(t *testing.T) {
	h := newInstalledHub(t)
	next := h.machines()[1].Name
	h.leaveNode()
	recorder := record.NewFakeRecorder(100)
	h.recorder.EventRecorder = recorder
	h.Expect(h.deleteMachine(0)).To(Equal(next))
	now := h.stopClock()
	h.reconcile()
	*now = now.Add(facts.UnreachableTime)
	h.reconcile()
	h.Expect(h.etcds.calls).To(Equal([]string{"delete Node n0 (n0)"}))
	h.Expect(h.controlPlane().Annotations).To(HaveKey(controlplanev1.ReleasedHostsAnnotation), "its member and its certificates come next")
	h.Expect(recorder.Events).To(Receive(ContainSubstring("NodeDeleted")))

	h.workloads.facts.Nodes = h.workloads.facts.Nodes[:2] // the watch reports it
	*now = now.Add(etcdgate.Interval)
	h.reconcile()
	h.Expect(h.etcds.calls).To(Equal([]string{"delete Node n0 (n0)", "delete Secrets of n0"}))
	h.Expect(h.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.ReleasedHostsAnnotation))
}

func TestNodeWithFinalizerIsDeletedOnce(t *testing.T) {
	h := newInstalledHub(t)
	h.leaveNode()
	h.etcds.finalized = true
	recorder := record.NewFakeRecorder(100)
	h.recorder.EventRecorder = recorder
	now := h.stopClock()
	h.reconcile()
	*now = now.Add(facts.UnreachableTime)
	for range 3 {
		h.endDeferral()
		h.Expect(h.reconcile().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", etcdgate.MaxDelay)))
		c := conditions.Get(h.controlPlane(), controlplanev1.HostsReleasingCondition)
		h.Expect(c.Reason).To(Equal(controlplanev1.WaitingForMachinesDeletionReason))
		h.Expect(c.Message).To(
			And(ContainSubstring("Node n0, whose Machine was deleted, is being deleted"), ContainSubstring("metadata.finalizers")),
		)
		*now = now.Add(etcdgate.MaxDelay)
	}
	h.Expect(h.etcds.calls).To(Equal([]string{"delete Node n0 (n0)"}))
	h.Expect(recorder.Events).To(Receive(ContainSubstring("NodeDeleted")))
	h.Expect(recorder.Events).NotTo(Receive(ContainSubstring("NodeDeleted")))
}

func TestNodeThatIsDeletedMeanwhileIsNotReportedAsDeleted(t *testing.T) {
	h := newInstalledHub(t)
	h.leaveNode()
	h.etcds.changing = apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, "n0")
	recorder := record.NewFakeRecorder(100)
	h.recorder.EventRecorder = recorder
	now := h.stopClock()
	h.reconcile()
	*now = now.Add(facts.UnreachableTime)
	h.endDeferral()
	h.reconcile()
	h.Expect(h.etcds.calls).To(Equal([]string{"delete Node n0 (n0)"}))
	h.Expect(recorder.Events).NotTo(Receive(ContainSubstring("NodeDeleted")))
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.HostsReleasingCondition)).To(
		ContainSubstring("Node n0, whose Machine was deleted, is being deleted"),
	)
}

// The kubelet of a server that reboots or is disconnected does not report for minutes, while its Pods may
// run.
func TestNodeWhoseKubeletIsSilentForAMomentIsNotDeleted(t *testing.T) {
	h := newInstalledHub(t)
	h.leaveNode()
	now := h.stopClock()
	h.endDeferral()
	h.Expect(h.reconcile().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", etcdgate.MaxDelay)))
	c := conditions.Get(h.controlPlane(), controlplanev1.HostsReleasingCondition)
	h.Expect(c.Reason).To(Equal(controlplanev1.WaitingForMachinesDeletionReason))
	h.Expect(c.Message).To(ContainSubstring("Waiting until the kubelet has not reported for 10 minutes"))

	*now = now.Add(facts.UnreachableTime - time.Second)
	h.Expect(h.reconcile().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", etcdgate.MaxDelay)))
	h.etcds.Nodes[2].Silent = false
	*now = now.Add(time.Minute)
	h.reconcile()
	h.etcds.Nodes[2].Silent = true
	*now = now.Add(time.Minute)
	h.reconcile()
	*now = now.Add(facts.UnreachableTime - time.Second)
	h.reconcile()
	h.Expect(h.etcds.calls).To(BeEmpty(), "the kubelet reported in between")

	h.r.hooks.Silent = reconcile.NewStartTimes[string](h.clock)
	*now = now.Add(time.Minute)
	h.reconcile()
	h.Expect(h.etcds.calls).To(BeEmpty(), "another manager starts to observe the kubelet again")
	*now = now.Add(facts.UnreachableTime)
	h.reconcile()
	h.Expect(h.etcds.calls).To(Equal([]string{"delete Node n0 (n0)"}))
}

func TestNodeThatMayRunIsNotDeleted(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "n0", errors.New("secret of a server"))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n0", errors.New("secret of a server"))
	for situation, tc := range map[string]struct {
		change          func(h *hub)
		calls           []string
		reason, message string
	}{
		"its kubelet reports": {
			func(h *hub) { h.etcds.Nodes[2].Silent = false },
			nil,
			controlplanev1.WaitingForMachinesDeletionReason,
			"its condition Ready is not Unknown",
		},
		"its member answers": {
			func(h *hub) { h.rejoin(func(*workload.EtcdMember) {}) }, nil,
			controlplanev1.ReleasedHostRunningReason, "etcd member n0 of this Node answers",
		},
		"its kubelet registered it again": {
			func(h *hub) { h.etcds.Nodes[2].UID = "again" },
			nil,
			controlplanev1.WaitingForMachinesDeletionReason,
			"Switch its host off, then delete the Node",
		},
		"it changes during the deletion": {
			func(h *hub) { h.etcds.changing = conflict },
			[]string{"delete Node n0 (n0)"},
			controlplanev1.WaitingForMachinesDeletionReason,
			"its kubelet may report again",
		},
		"the rights do not suffice": {
			func(h *hub) { h.etcds.changing = forbidden },
			[]string{"delete Node n0 (n0)"},
			controlplanev1.NodeDeletionForbiddenReason,
			"lack the permission to delete Nodes. Grant the permission, or switch its host off, then delete the Node, which wipes nothing",
		},
		"its member may serve": {
			func(h *hub) { h.rejoin(func(m *workload.EtcdMember) { m.Problem = "does not answer" }) },
			nil,
			controlplanev1.ReleasedHostRunningReason,
			"etcd member n0 of this Node may serve",
		},
		"its deletion fails": {
			func(h *hub) { h.etcds.changing = errors.New("secret of a server") },
			[]string{"delete Node n0 (n0)"},
			controlplanev1.EtcdUnknownReason,
			"The provider retries",
		},
		"etcd cannot be inspected": {
			func(h *hub) { h.etcds.observing = errors.New("secret of a server") }, nil, controlplanev1.EtcdUnknownReason, "The provider retries",
		},
		"the cluster is unreachable": {
			func(h *hub) { h.workloads.facts.Connected = false },
			nil,
			controlplanev1.ConnectionDownReason,
			"Node n0 has left behind cannot be cleaned up",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newInstalledHub(t)
			h.leaveNode()
			tc.change(h)
			now := h.stopClock()
			h.reconcile()
			*now = now.Add(facts.UnreachableTime)
			h.endDeferral()
			h.reconcile()
			h.Expect(h.etcds.calls).To(Equal(tc.calls))
			h.Expect(h.controlPlane().Annotations).To(HaveKey(controlplanev1.ReleasedHostsAnnotation))
			c := conditions.Get(h.controlPlane(), controlplanev1.HostsReleasingCondition)
			h.Expect(c.Reason).To(Equal(tc.reason))
			h.Expect(c.Message).To(And(ContainSubstring(tc.message), Not(ContainSubstring("secret of a server"))))
		})
	}
}

// A hook that was removed by hand proves nothing.
func TestNodeWithoutRecordedReleaseIsNotDeleted(t *testing.T) {
	h := newInstalledHub(t)
	h.leaveNode()
	h.annotate(controlplanev1.ReleasedHostsAnnotation, h.recorded())
	now := h.stopClock()
	h.reconcile()
	*now = now.Add(facts.UnreachableTime)
	h.reconcile()
	h.Expect(h.etcds.calls).To(BeEmpty())
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.HostsReleasingCondition)).To(
		ContainSubstring("Switch its host off, then delete the Node, which wipes nothing"),
	)
}

// The Secrets of a Node are not deleted if no record names the Node.
func TestReleasedHostWithoutNodeIsCleanedUp(t *testing.T) {
	h := newInstalledHub(t)
	h.annotate(controlplanev1.ReleasedHostsAnnotation, `[{"machine":"spare","providerID":"metal3://n9"}]`)
	h.reconcile()
	h.Expect(h.etcds.inspections).To(Equal(1))
	h.Expect(h.etcds.calls).To(BeEmpty())
	h.Expect(h.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.ReleasedHostsAnnotation))
}

// The certificates of a deleted host can be deleted until its record is dropped. A lagging cache may show an
// Agent of the former Machine. The Agent does not end the record.
func TestAgentOfFormerMachineDoesNotEndTheRecord(t *testing.T) {
	h := newInstalledHub(t)
	m := h.machines()[0]
	m.Spec.ProviderID = ""
	h.Expect(h.Update(t.Context(), &m)).To(Succeed())
	m.Status.NodeRef.Name = ""
	h.Expect(h.Status().Update(t.Context(), &m)).To(Succeed())
	former := h.createAgent(&m, "former")
	n0 := &h.workloads.facts.Nodes[0]
	n0.ProviderID, n0.HostUID = "", "host"
	h.annotate(controlplanev1.ReleasedHostsAnnotation, recordOf(m.Name))
	h.scale(1)
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(controlplanev1.ReleasedHostsAnnotation, recordOf(m.Name)))
	h.Expect(h.machines()).To(HaveLen(3), "one after the other")
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.ScalingDownCondition)).To(
		ContainSubstring("what is left of Node n0, whose host was released before, is handled first"),
	)
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.HostsReleasingCondition)).To(
		Equal("cleaning up after the host of Node n0"),
	)

	h.scale(3)
	h.Expect(h.Delete(t.Context(), former)).To(Succeed())
	h.workloads.facts.Nodes, h.etcds.Nodes, h.etcds.Members = h.workloads.facts.Nodes[1:], h.etcds.Nodes[1:], h.etcds.Members[1:]
	h.reconcile()
	h.Expect(h.etcds.calls).To(Equal([]string{"delete Secrets of n0"}))
	h.Expect(h.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.ReleasedHostsAnnotation))
}
