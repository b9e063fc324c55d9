package controlplane

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdremoval"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// fakeEtcds is the etcd of a cluster. It executes requests, or fails.
type fakeEtcds struct {
	workload.Etcd
	// calls are the requests for changes, inspections the number of reads, serveChecks the number of checks
	// whether it serves.
	calls       []string
	inspections int
	serveChecks int
	// stubborn members stay leader although they report the handover.
	stubborn bool
	// finalized Nodes stay after their deletion.
	finalized bool
	// observing is the error of reads, changing that of changes. dying ends the manager at the next change.
	observing, changing error
	dying               bool
}

func (f *fakeEtcds) Observe(context.Context, client.ObjectKey) (workload.Etcd, error) {
	f.inspections++
	seen := f.Etcd
	seen.Members = slices.Clone(f.Members)
	return seen, f.observing
}

func (f *fakeEtcds) Serves(context.Context, client.ObjectKey) (bool, error) {
	f.serveChecks++
	return !f.Lost, f.observing
}

func (f *fakeEtcds) MoveLeader(_ context.Context, _ client.ObjectKey, leader, to workload.EtcdMember) error {
	f.calls = append(f.calls, fmt.Sprintf("lead %s instead of %s", to.Name, leader.Name))
	if f.changing == nil && !f.stubborn {
		for i := range f.Members {
			f.Members[i].Leader = f.Members[i].ID == to.ID
		}
	}
	return f.changing
}

func (f *fakeEtcds) RemoveMember(_ context.Context, _ client.ObjectKey, via, member workload.EtcdMember) error {
	if f.dying {
		panic("the manager ends")
	}
	f.calls = append(f.calls, fmt.Sprintf("remove %s through %s", member.Name, via.Name))
	if f.changing == nil {
		f.Members = slices.DeleteFunc(f.Members, func(m workload.EtcdMember) bool { return m.ID == member.ID })
	}
	return f.changing
}

func (f *fakeEtcds) DeleteSecrets(_ context.Context, _ client.ObjectKey, node string) error {
	f.calls = append(f.calls, "delete Secrets of "+node)
	return f.changing
}

// DeleteNode acts as an API server: it only marks a Node that has a finalizer, and does not find a Node that
// does not exist.
func (f *fakeEtcds) DeleteNode(_ context.Context, _ client.ObjectKey, node workload.ControlPlaneNode) error {
	f.calls = append(f.calls, fmt.Sprintf("delete Node %s (%s)", node.Name, node.UID))
	known := f.Node(node.Name)
	switch {
	case f.changing != nil:
		return f.changing
	case known == nil:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, node.Name)
	case f.finalized:
		known.Deleting = true
	default:
		f.Nodes = slices.DeleteFunc(f.Nodes, func(n workload.ControlPlaneNode) bool { return n.UID == node.UID })
	}
	return nil
}

// settledEtcd returns an etcd with one member, on a Node without Machine.
func settledEtcd() workload.Etcd {
	return workload.Etcd{
		Topology:       configv1.HighlyAvailableTopologyMode,
		Operators:      []workload.ClusterOperator{{Name: "etcd", Available: true}, {Name: "kube-apiserver", Available: true}},
		Members:        []workload.EtcdMember{{ID: 1, Name: "n0", Leader: true, Hosts: []string{"n0"}}},
		LatestRevision: 7,
		Revisions:      []workload.Revision{{Node: "n0", Current: 7}},
	}
}

// newInstalledHub returns a hub with an installed, healthy cluster. Its Machines run on the Nodes n0 to n2.
// n0 leads etcd.
func newInstalledHub(t *testing.T) *hub {
	t.Helper()
	return newInstalledHubOf(t, nil)
}

// newInstalledHubOf returns a hub whose control plane was changed before its installation.
func newInstalledHubOf(t *testing.T, change func(*controlplanev1.OpenshiftAssistedControlPlane)) *hub {
	t.Helper()
	h := newHub(t, world(change)...).withTime()
	h.install()
	h.etcds.Etcd = settledEtcd()
	h.etcds.Members, h.etcds.Revisions = nil, nil
	for i, m := range h.machines() {
		h.join(m.Name, fmt.Sprintf("n%d", i))
	}
	h.etcds.Members[0].Leader = true
	h.reconcile()
	h.reconcile()
	return h
}

// nodeOf returns a Node as it was installed.
func nodeOf(name string) workload.Node {
	return workload.Node{Name: name, UID: types.UID(name), ProviderID: "metal3://" + name}
}

// deleteMachine deletes a Machine, and acts as Cluster API until it waits for hooks.
func (h *hub) deleteMachine(i int) string {
	h.t.Helper()
	m := h.machines()[i]
	m.Finalizers = []string{clusterv1.MachineFinalizer}
	h.Expect(h.Update(h.t.Context(), &m)).To(Succeed())
	h.Expect(h.Delete(h.t.Context(), &m)).To(Succeed())
	h.get(m.Name, &m)
	conditions.Set(&m, metav1.Condition{
		Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason,
	})
	h.Expect(h.Status().Update(h.t.Context(), &m)).To(Succeed())
	return m.Name
}

// finishMachine acts as Cluster API when no hook is left: it deletes host, Node and Machine.
func (h *hub) finishMachine(name string) {
	h.t.Helper()
	m := &clusterv1.Machine{}
	h.get(name, m)
	node := m.Status.NodeRef.Name
	m.Finalizers = nil
	h.Expect(h.Update(h.t.Context(), m)).To(Succeed())
	h.workloads.facts.Nodes = slices.DeleteFunc(h.workloads.facts.Nodes, func(n workload.Node) bool { return n.Name == node })
	h.etcds.Nodes = slices.DeleteFunc(h.etcds.Nodes, func(n workload.ControlPlaneNode) bool { return n.Name == node })
	h.etcds.Revisions = slices.DeleteFunc(h.etcds.Revisions, func(r workload.Revision) bool { return r.Node == node })
}

// held returns the Machines that have our hook.
func (h *hub) held() []string {
	h.t.Helper()
	var held []string
	for _, m := range h.machines() {
		if _, found := m.Annotations[controlplanev1.EtcdMemberHookAnnotation]; found {
			held = append(held, m.Name)
		}
	}
	return held
}

func TestMachinesGetTheHookAtTheEndOfTheInstallation(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.setState("installing", "", 50)
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	h.Expect(h.held()).To(BeEmpty(), "etcd does not exist yet")

	h.install()
	h.reconcile()
	h.Expect(h.held()).To(Equal(h.names()))
	h.writes = nil
	h.reconcile()
	h.Expect(h.writes).To(BeEmpty())
}

func TestHostLeavesEtcdBeforeItIsDeprovisioned(t *testing.T) {
	h := newInstalledHub(t)
	recorder := record.NewFakeRecorder(100)
	h.recorder.EventRecorder = recorder
	h.reconcile()
	h.Expect(h.etcds.inspections).To(BeZero(), "no Machine waits")

	going := h.deleteMachine(0)
	h.reconcile()
	h.Expect(h.etcds.calls).To(Equal([]string{"lead n1 instead of n0", "remove n0 through n1"}))
	h.Expect(h.held()).To(HaveLen(2))
	h.Expect(h.held()).NotTo(ContainElement(going))
	h.Expect(h.recorded()).To(Equal(recordOf(going)))
	h.Expect(h.condition(controlplanev1.ScalingDownCondition)).To(
		And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", BeEmpty())), "the number of desired Machines did not change",
	)
	h.Expect(h.condition(controlplanev1.HostsReleasingCondition)).To(And(HaveField("Status", metav1.ConditionTrue),
		HaveField("Message", "releasing the host of Machine "+going+": see its condition Deleting")))
	for _, wanted := range []string{"EtcdLeaderMoved", "EtcdMemberRemoved", "HostReleased"} {
		h.Expect(recorder.Events).To(Receive(ContainSubstring(wanted)))
	}

	h.etcds.calls, h.etcds.inspections = nil, 0
	h.reconcile()
	h.Expect(h.etcds.inspections).To(BeZero(), "the host is already being deprovisioned")

	h.finishMachine(going)
	h.reconcile()
	h.Expect(h.etcds.calls).To(Equal([]string{"delete Secrets of n0"}))
	h.Expect(h.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.ReleasedHostsAnnotation))
	h.Expect(recorder.Events).To(Receive(ContainSubstring("EtcdMemberCleanedUp")))
	h.reconcile()
	h.Expect(h.condition(controlplanev1.HostsReleasingCondition)).To(
		And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", controlplanev1.NotReleasingReason)),
	)
}

// recordOf returns the record of the host n0.
func recordOf(machine string) string {
	return fmt.Sprintf(`[{"machine":%q,"providerID":"metal3://n0","node":"n0","uid":"n0","addresses":["n0"],"members":["1"]}]`, machine)
}

// released is the time in a record.
var released = regexp.MustCompile(`,"released":"[^"]+"`)

// recorded returns the record of released hosts, without the times.
func (h *hub) recorded() string {
	h.t.Helper()
	return released.ReplaceAllString(h.controlPlane().Annotations[controlplanev1.ReleasedHostsAnnotation], "")
}

func TestTwoMastersAreNotReleasedAtOnce(t *testing.T) {
	h := newInstalledHub(t)
	first, second := h.deleteMachine(0), h.deleteMachine(1)
	h.reconcile()
	h.endDeferral()
	h.reconcile()
	h.Expect(h.held()).To(And(ContainElement(second), Not(ContainElement(first))))
	h.Expect(h.etcds.Members).To(HaveLen(2))
	c := conditions.Get(h.controlPlane(), controlplanev1.HostsReleasingCondition)
	h.Expect(c.Status).To(Equal(metav1.ConditionTrue))
	h.Expect(c.Reason).To(Equal(controlplanev1.WaitingForMachinesDeletionReason))
	h.Expect(c.Message).To(ContainSubstring("the host of Machine " + second + " is not touched: Machine " + first + " is being removed"))

	h.finishMachine(first)
	h.reconcile()
	h.endDeferral()
	h.Expect(h.reconcile().RequeueAfter).To(BeNumerically("<=", etcdgate.InitialDelay))
	h.Expect(h.held()).To(ContainElement(second))
	h.Expect(h.etcds.Members).To(HaveLen(2), "the release waits for another host")
	h.Expect(h.condition(controlplanev1.HostsReleasingCondition).Reason).To(Equal(controlplanev1.WaitingForReplacementReason))
}

func TestBlockersOfTheReleaseOfAHost(t *testing.T) {
	watched := []string{"the cluster is unreachable", "the record is invalid"}
	for situation, tc := range map[string]struct {
		change          func(h *hub)
		reason, message string
	}{
		"another member is down": {
			func(h *hub) { h.etcds.Members[2].Problem = "does not answer" }, controlplanev1.EtcdQuorumAtRiskReason, "n2 does not answer",
		},
		"the cluster is unreachable": {
			func(h *hub) {
				h.etcds.observing = cluster.ErrNotConnected
				h.workloads.facts.Failure = &workload.Failure{Message: "its name cannot be resolved"}
			}, controlplanev1.ConnectionDownReason,
			"the state of etcd is unknown: its name cannot be resolved. Waiting until the API server answers",
		},
		"etcd does not serve its cluster": {
			func(h *hub) { h.etcds.Lost = true }, controlplanev1.EtcdQuorumAtRiskReason, "it has most likely lost its quorum",
		},
		"etcd cannot be read": {
			func(h *hub) { h.etcds.observing = errors.New("secret of a server") }, controlplanev1.EtcdUnknownReason, "the log of the manager",
		},
		"the right to read is missing": {func(h *hub) {
			h.etcds.observing = apierrors.NewForbidden(schema.GroupResource{}, "secret of a server", errors.New("secret of a server"))
		}, controlplanev1.EtcdUnknownReason, "the credentials of the kubeconfig lack the permission"},
		"etcd refuses": {
			func(h *hub) { h.etcds.changing = errors.New("secret of a server") }, controlplanev1.EtcdUnknownReason, "the log of the manager",
		},
		"etcd refuses, and another leads": {func(h *hub) {
			h.etcds.Members[0].Leader, h.etcds.Members[1].Leader = false, true
			h.etcds.changing = errors.New("secret of a server")
		}, controlplanev1.EtcdUnknownReason, "the log of the manager"},
		"etcd is full": {
			func(h *hub) { h.etcds.Alarms = []workload.EtcdAlarm{{Kind: workload.EtcdNoSpace, Member: 2}} },
			controlplanev1.EtcdAlarmReason,
			"etcdctl alarm disarm",
		},
		"the host is the only member": {
			func(h *hub) { h.etcds.Members = h.etcds.Members[:1] },
			controlplanev1.LastEtcdMemberReason,
			"delete the Cluster, which wipes all its hosts",
		},
		"the record is invalid": {func(h *hub) {
			cp := h.controlPlane()
			cp.Annotations = map[string]string{controlplanev1.ReleasedHostsAnnotation: "n0"}
			h.Expect(h.Update(h.t.Context(), cp)).To(Succeed())
		}, controlplanev1.InvalidConfigurationReason, controlplanev1.ReleasedHostsAnnotation},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newInstalledHub(t)
			tc.change(h)
			members := slices.Clone(h.etcds.Members)
			going := h.deleteMachine(0)
			result := h.reconcile()
			if slices.Contains(watched, situation) {
				h.Expect(result.RequeueAfter).To(Or(BeZero(), BeNumerically(">", time.Hour)), "a watch triggers the next reconcile")
			} else {
				h.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", etcdgate.InitialDelay)), "etcd cannot be watched")
			}
			h.Expect(h.held()).To(ContainElement(going))
			h.Expect(h.etcds.Members).To(Equal(members))
			c := conditions.Get(h.controlPlane(), controlplanev1.HostsReleasingCondition)
			h.Expect(c.Status).To(Equal(metav1.ConditionTrue))
			h.Expect(c.Reason).To(Equal(tc.reason))
			h.Expect(c.Message).To(And(ContainSubstring(tc.message), Not(ContainSubstring("secret of a server"))))
			h.Expect(h.condition(controlplanev1.ScalingDownCondition)).To(
				And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", clusterv1.NotScalingDownReason), HaveField("Message", BeEmpty())),
				"spec.replicas is not changed",
			)
		})
	}
}

func TestMachineThatDoesNotWaitForHooksIsNotChanged(t *testing.T) {
	h := newInstalledHub(t)
	going := h.deleteMachine(0)
	m := &clusterv1.Machine{}
	h.get(going, m)
	conditions.Set(m, metav1.Condition{
		Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingDrainingNodeReason,
	})
	h.Expect(h.Status().Update(t.Context(), m)).To(Succeed())
	h.reconcile()
	h.Expect(h.etcds.inspections).To(BeZero())
	h.Expect(h.held()).To(ContainElement(going))
}

func TestLostQuorumIsReportedWhileAMachineIsDrained(t *testing.T) {
	h := newInstalledHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.etcds.Lost = true
	m := &clusterv1.Machine{}
	h.get(h.deleteMachine(0), m)
	h.setDeletingReason(m, clusterv1.MachineDeletingDrainingNodeReason)
	h.reconcile()
	c := conditions.Get(h.controlPlane(), controlplanev1.HostsReleasingCondition)
	h.Expect(c.Reason).To(Equal(controlplanev1.EtcdQuorumAtRiskReason))
	h.Expect(c.Message).To(And(ContainSubstring(m.Name), ContainSubstring("lost its quorum")))

	for _, after := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute} {
		now = now.Add(after - time.Second)
		h.reconcile()
		h.Expect(conditions.GetReason(h.controlPlane(), controlplanev1.HostsReleasingCondition)).To(
			Equal(controlplanev1.EtcdQuorumAtRiskReason), "the report stays until the next check",
		)
		serveChecks := h.etcds.serveChecks
		h.Expect(h.reconcile().RequeueAfter).To(Equal(time.Second), "the delay grows")
		h.Expect(h.etcds.serveChecks).To(Equal(serveChecks), "events trigger no check")
		now = now.Add(time.Second)
		h.reconcile()
		h.Expect(h.etcds.serveChecks).To(Equal(serveChecks + 1))
	}

	h.etcds.Lost = false
	now = now.Add(etcdgate.MaxDelay)
	h.Expect(h.reconcile().RequeueAfter).To(Equal(etcdgate.InitialBackgroundDelay), "the quorum may be lost later")
	h.Expect(conditions.GetReason(h.controlPlane(), controlplanev1.HostsReleasingCondition)).To(Equal(controlplanev1.WaitingForDrainReason))
	h.Expect(h.etcds.inspections).To(BeZero())
	h.Expect(h.held()).To(ContainElement(m.Name))
}

func TestPausedClusterReleasesNoHost(t *testing.T) {
	h := newInstalledHub(t)
	going := h.deleteMachine(0)
	c := &clusterv1.Cluster{}
	h.get("cluster1", c)
	paused := true
	c.Spec.Paused = &paused
	h.Expect(h.Update(t.Context(), c)).To(Succeed())
	h.reconcile()
	h.Expect(h.etcds.inspections).To(BeZero())
	h.Expect(h.held()).To(ContainElement(going))
}

func TestReleaseThatTheCacheLacksIsNotRepeated(t *testing.T) {
	h := newInstalledHub(t)
	going := h.deleteMachine(0)
	m := &clusterv1.Machine{}
	h.get(going, m)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.r.writer.Recent = reconcile.NewRecentWrites(h.clock)
	h.r.writer.Recent.Record(etcdremoval.HookKey(m), m.ResourceVersion)
	h.reconcile()
	h.Expect(h.etcds.inspections).To(BeZero())
}

func TestHostThatRejoinedIsRemovedAgain(t *testing.T) {
	h := newInstalledHub(t)
	going := h.deleteMachine(0)
	h.reconcile()
	h.etcds.Members = append(h.etcds.Members, workload.EtcdMember{
		ID: 9, Name: "n0", Learner: true, Hosts: []string{"n0"}, Problem: "does not answer",
	})
	h.etcds.calls = nil
	h.finishMachine(going)
	h.reconcile()
	h.Expect(h.etcds.calls).To(Equal([]string{"remove n0 through n1", "delete Secrets of n0"}))
	h.Expect(h.etcds.Members).To(HaveLen(2))
}

func TestBlockersOfTheCleanUpOfAHost(t *testing.T) {
	for situation, tc := range map[string]struct {
		change          func(h *hub)
		reason, message string
	}{
		"its Node remains": {func(h *hub) {
			h.workloads.facts.Nodes = append(h.workloads.facts.Nodes, nodeOf("n0"))
		}, controlplanev1.WaitingForMachinesDeletionReason, "Node n0 still exists although its Machine was deleted"},
		"the Nodes cannot be read": {
			func(h *hub) { h.workloads.facts.UnreadSince = time.Now() },
			controlplanev1.HealthUnknownReason,
			"Node n0 has left behind cannot be cleaned up: the Nodes",
		},
		"the cluster is unreachable": {
			func(h *hub) { h.workloads.facts.Connected = false },
			controlplanev1.ConnectionDownReason,
			"Node n0 has left behind cannot be cleaned up: the API server of the cluster does not answer",
		},
		"another host has its name and address, and its member is down": {func(h *hub) {
			h.addNodeOfAnotherHost("n0", "n0")
			h.etcds.Members = append(h.etcds.Members, workload.EtcdMember{ID: 9, Name: "n0", Hosts: []string{"n0"}, Problem: "does not answer"})
		}, controlplanev1.EtcdHostNotIdentifiedReason, "or to the host that is Node n0 now"},
		"the Secrets cannot be deleted": {
			func(h *hub) { h.etcds.changing = errors.New("secret of a server") }, controlplanev1.EtcdUnknownReason, "the log of the manager",
		},
		"etcd cannot be read": {
			func(h *hub) { h.etcds.observing = errors.New("secret of a server") }, controlplanev1.EtcdUnknownReason, "the log of the manager",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newInstalledHub(t)
			h.release(0)
			tc.change(h)
			h.endDeferral()
			h.reconcile()
			h.Expect(h.controlPlane().Annotations).To(HaveKey(controlplanev1.ReleasedHostsAnnotation))
			c := conditions.Get(h.controlPlane(), controlplanev1.HostsReleasingCondition)
			h.Expect(c.Status).To(Equal(metav1.ConditionTrue))
			h.Expect(c.Reason).To(Equal(tc.reason))
			h.Expect(c.Message).To(And(ContainSubstring(tc.message), Not(ContainSubstring("secret of a server"))))
			if h.etcds.changing == nil {
				h.Expect(h.etcds.calls).To(BeEmpty())
			}
		})
	}
}

// release deletes a Machine and completes its deletion.
func (h *hub) release(i int) {
	h.t.Helper()
	going := h.deleteMachine(i)
	h.reconcile()
	h.etcds.calls = nil
	h.finishMachine(going)
}

// addNodeOfAnotherHost makes another host a Node of a name.
func (h *hub) addNodeOfAnotherHost(name, address string) {
	node := workload.Node{Name: name, UID: "another", ProviderID: "metal3://another"}
	h.workloads.facts.Nodes = append(h.workloads.facts.Nodes, node)
	h.etcds.Nodes = append(h.etcds.Nodes, workload.ControlPlaneNode{Node: node, Addresses: []string{address}})
}

func TestAnotherHostGetsTheNameOfReleasedHost(t *testing.T) {
	for situation, tc := range map[string]struct {
		members []workload.EtcdMember
		address string
		calls   []string
	}{
		"the new host is no member yet": {},
		"the new host is a member":      {[]workload.EtcdMember{{ID: 9, Name: "n0", Hosts: []string{"n0"}}}, "n0", nil},
		"the released host had rejoined": {
			[]workload.EtcdMember{{ID: 9, Name: "n0", Hosts: []string{"n0"}, Problem: "does not answer"}}, "other", []string{"remove n0 through n1"},
		},
		"the released host had not left etcd": {
			[]workload.EtcdMember{{ID: 1, Name: "n0", Hosts: []string{"n0"}, Problem: "does not answer"}}, "n0", []string{"remove n0 through n1"},
		},
		"the released host had rejoined and not started": {
			[]workload.EtcdMember{{ID: 9, Learner: true, Hosts: []string{"n0"}, Problem: "does not answer"}},
			"other",
			[]string{"remove  through n1"},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newInstalledHub(t)
			h.release(0)
			h.etcds.Members = append(h.etcds.Members, tc.members...)
			h.addNodeOfAnotherHost("n0", tc.address)
			h.reconcile()
			h.Expect(h.etcds.calls).To(Equal(tc.calls), "and no Secret, because it belongs to the other host")
			h.Expect(h.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.ReleasedHostsAnnotation))
		})
	}
}

// The Machine of a recorded host is not being deleted, because it came from another hub while it was deleted
// there. The record blocks no other host.
func TestRecordOfMachineThatIsNotDeletedBlocksNothing(t *testing.T) {
	h := newInstalledHub(t)
	cp := h.controlPlane()
	cp.Annotations = map[string]string{controlplanev1.ReleasedHostsAnnotation: `[{"node":"n0","uid":"n0","members":["1"]}]`}
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.ReleasedHostsAnnotation))
	h.Expect(h.etcds.inspections).To(BeZero())
	h.Expect(h.held()).To(HaveLen(3))
}

// A Machine that was removed from the control plane does not count as deleted.
func TestDeletedMachineThatIsTakenOutDoesNotCountAsDeleted(t *testing.T) {
	h := newInstalledHub(t)
	going := h.deleteMachine(0)
	h.reconcile()
	m := &clusterv1.Machine{}
	h.get(going, m)
	m.OwnerReferences, m.Labels = nil, nil
	h.Expect(h.Update(t.Context(), m)).To(Succeed())
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).To(HaveKey(controlplanev1.ReleasedHostsAnnotation))
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.HostsReleasingCondition)).NotTo(ContainSubstring("is still there"))
}

// The manager ends at any step, and starts again without memory.
func TestManagerMayEndAtAnyStep(t *testing.T) {
	for situation, tc := range map[string]struct {
		end func(h *hub, going string)
		// members is the number of members left by then; recorded reports whether the host is recorded.
		members  int
		recorded bool
	}{
		"before the record":          {func(h *hub, _ string) { h.failAt(recording) }, 3, false},
		"between record and removal": {func(h *hub, _ string) { h.etcds.dying = true }, 3, true},
		"between removal and release": {
			func(h *hub, going string) { h.failAt(func(obj client.Object) bool { return obj.GetName() == going }) }, 2, true,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newInstalledHub(t)
			h.etcds.Members[0].Leader, h.etcds.Members[1].Leader = false, true
			going := h.deleteMachine(0)
			whole := h.cached.Client
			tc.end(h, going)
			func() {
				defer func() { h.Expect(recover()).To(Equal("the manager ends")) }()
				_, _ = h.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: lab, Name: "c1"}})
			}()
			h.Expect(h.held()).To(ContainElement(going))
			h.Expect(h.etcds.Members).To(HaveLen(tc.members))
			recorded := h.controlPlane().Annotations[controlplanev1.ReleasedHostsAnnotation]
			if tc.recorded {
				h.Expect(recorded).NotTo(BeEmpty())
			} else {
				h.Expect(recorded).To(BeEmpty())
			}

			h.etcds.dying = false
			h.cached.Client = whole
			h.r = New(h.r.Options)
			h.withTime()
			h.reconcile()
			h.Expect(h.held()).NotTo(ContainElement(going))
			h.Expect(h.etcds.Members).To(HaveLen(2))
			h.Expect(h.recorded()).To(Equal(recordOf(going)))
		})
	}
}

// failAt makes the manager end at its next write of something.
func (h *hub) failAt(what func(client.Object) bool) {
	h.cached.Client = interceptor.NewClient(h.cached.Client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // the fake one
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if what(obj) {
				panic("the manager ends")
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
}

// recording reports whether a written object records released hosts.
func recording(obj client.Object) bool {
	return obj.GetAnnotations()[controlplanev1.ReleasedHostsAnnotation] != ""
}

func TestDeletedClusterReleasesAllHosts(t *testing.T) {
	for situation, remove := range map[string]func(h *hub){
		"the Cluster is deleted": func(h *hub) {
			c := &clusterv1.Cluster{}
			h.get("cluster1", c)
			c.Finalizers = []string{clusterv1.ClusterFinalizer}
			h.Expect(h.Update(h.t.Context(), c)).To(Succeed())
			h.Expect(h.Delete(h.t.Context(), c)).To(Succeed())
		},
		"the control plane is deleted": func(h *hub) { h.Expect(h.Delete(h.t.Context(), h.controlPlane())).To(Succeed()) },
		"and workers still exist": func(h *hub) {
			worker := &clusterv1.Machine{
				ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "worker-1"}, Spec: clusterv1.MachineSpec{ClusterName: "cluster1"},
			}
			h.Expect(h.Create(h.t.Context(), worker)).To(Succeed())
			h.Expect(h.Delete(h.t.Context(), h.controlPlane())).To(Succeed())
		},
		"and a Machine was removed from the control plane": func(h *hub) {
			m := h.machines()[1]
			m.OwnerReferences, m.Labels = nil, nil
			h.Expect(h.Update(h.t.Context(), &m)).To(Succeed())
			h.Expect(h.Delete(h.t.Context(), h.controlPlane())).To(Succeed())
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newInstalledHub(t)
			h.etcds.observing = errors.New("the cluster does not exist")
			h.deleteMachine(0)
			remove(h)
			h.reconcile()
			h.Expect(h.held()).To(BeEmpty())
			h.Expect(h.etcds.inspections).To(BeZero())
			h.reconcile()
			h.Expect(h.held()).To(BeEmpty(), "and no hook is added again")
		})
	}
}
