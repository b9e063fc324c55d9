package remediation

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world is an installed cluster whose Machines m0, m1... were made one hour after the other, the first of them a day
// ago. n0 leads its etcd.
type world struct {
	*facts.Facts
	facts.Etcd
}

func newWorld(hosts int) *world {
	w := &world{
		Facts: &facts.Facts{
			ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "c1", Annotations: map[string]string{}}},
			Cluster:      &clusterv1.Cluster{}, RebootFailed: sets.New[types.UID](),
		},
		Etcd: facts.Etcd{
			Topology:       configv1.HighlyAvailableTopologyMode,
			Operators:      []facts.ClusterOperator{{Name: "etcd", Available: true}, {Name: "kube-apiserver", Available: true}},
			LatestRevision: 7,
		},
	}
	w.ControlPlane.Spec.Replicas, w.ControlPlane.Spec.Version = ptr.To(int32(hosts)), "4.19.3"
	w.Phase, w.Progress.DayTwo = controlplanev1.InstallationInstalled, true
	for i := range hosts {
		w.join(i)
	}
	w.Etcd.Members[0].Leader = true
	return w
}

// join adds a Machine whose host is a member.
func (w *world) join(i int) {
	name, node := fmt.Sprintf("m%d", i), fmt.Sprintf("n%d", i)
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(i-24) * time.Hour)), Annotations: map[string]string{controlplanev1.EtcdMemberHookAnnotation: ""},
	}}
	m.Spec.ProviderID, m.Status.NodeRef.Name = "metal3://"+node, node
	w.Machines = append(w.Machines, m)
	known := facts.Node{Name: node, UID: types.UID(node), ProviderID: "metal3://" + node}
	w.Workload.Nodes = append(w.Workload.Nodes, known)
	w.Members = append(w.Members, facts.EtcdMember{ID: uint64(i + 1), Name: node, Hosts: []string{node}})
	w.Etcd.Nodes = append(w.Etcd.Nodes, facts.ControlPlaneNode{Node: known, Addresses: []string{node}})
	w.Revisions = append(w.Revisions, facts.Revision{Node: node, Current: 7})
}

// sicken makes a MachineHealthCheck ask for the remediation of Machines.
func (w *world) sicken(which ...int) {
	for _, i := range which {
		conditions.Set(w.Machines[i], metav1.Condition{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse, Reason: "x"})
		conditions.Set(w.Machines[i], metav1.Condition{Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse, Reason: "x"})
	}
}

// fail takes hosts away.
func (w *world) fail(which ...int) {
	for _, i := range which {
		w.Members[i].Problem = "does not answer"
		w.Members[i].Leader = false
	}
	for i := range w.Members {
		if w.Members[i].Healthy() {
			w.Members[i].Leader = true
			break
		}
	}
	w.Operators[0].Degraded = true
}

func (w *world) recorded(on metav1.Object, annotation, machine string, before time.Duration, retries int32) {
	record, err := json.Marshal(facts.Remediation{Machine: machine, Timestamp: metav1.NewTime(noon.Add(-before)), RetryCount: retries})
	if err != nil {
		panic(err)
	}
	annotations := on.GetAnnotations()
	annotations[annotation] = string(record)
}

// decide is what happens, as the reconciler asks; nil: nothing is to be done.
func (w *world) decide() *Step {
	asked := Of(w.Facts, noon)
	if len(asked.Machines) == 0 {
		return nil
	}
	if step := asked.Before(); step != nil {
		return step
	}
	step := asked.Decide(&w.Etcd)
	return &step
}

func TestWhatIsReplaced(t *testing.T) {
	for situation, tc := range map[string]struct {
		hosts    int
		change   func(w *world)
		replaced string
	}{
		"nobody is unhealthy":                                           {3, func(*world) {}, ""},
		"one of three, whose member is down":                            {3, func(w *world) { w.sicken(1); w.fail(1) }, "m1"},
		"one of three, whose member is well: a kubelet, or a user asks": {3, func(w *world) { w.sicken(2) }, "m2"},
		"one that only is unhealthy, for somebody else to remediate": {3, func(w *world) {
			w.sicken(1)
			conditions.Delete(w.Machines[1], clusterv1.MachineOwnerRemediatedCondition)
		}, ""},
		"one whose host was rebooted in vain": {3, func(w *world) {
			w.sicken(1)
			conditions.Delete(w.Machines[1], clusterv1.MachineOwnerRemediatedCondition)
			w.RebootFailed.Insert("m1")
		}, "m1"},
		"one that is healthy again": {3, func(w *world) {
			w.sicken(1)
			conditions.Set(w.Machines[1], metav1.Condition{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionTrue, Reason: "x"})
		}, ""},
		"a user keeps it": {3, func(w *world) {
			w.sicken(1)
			w.Machines[1].Annotations[clusterv1.MachineSkipRemediationAnnotation] = ""
		}, ""},
		"a user paused it": {3, func(w *world) { w.sicken(1); w.Machines[1].Annotations[clusterv1.PausedAnnotation] = "" }, ""},
		"of two the older, whatever its name": {5, func(w *world) {
			w.sicken(1, 2)
			w.Machines[1].CreationTimestamp = w.Machines[3].CreationTimestamp
		}, "m2"},
		"of two of one age, by name": {5, func(w *world) {
			w.sicken(1, 2)
			w.Machines[1].CreationTimestamp = w.Machines[2].CreationTimestamp
		}, "m1"},
		"of two the one whose member is down":      {5, func(w *world) { w.sicken(0, 3); w.fail(3) }, "m3"},
		"of two the one that never became a Node":  {5, func(w *world) { w.sicken(0, 4); w.fail(0); w.Machines[4].Status.NodeRef.Name = ""; w.leave(4) }, "m4"},
		"of two the one that the user marked":      {5, func(w *world) { w.sicken(0, 3); w.fail(0); w.mark(3) }, ""},
		"of two dead ones the one that was marked": {5, func(w *world) { w.sicken(0, 3); w.fail(0, 3); w.mark(3) }, "m3"},
	} {
		t.Run(situation, func(t *testing.T) {
			g, w := NewWithT(t), newWorld(tc.hosts)
			tc.change(w)
			step := w.decide()
			if tc.replaced == "" {
				g.Expect(step == nil || !step.Delete).To(BeTrue())
				return
			}
			g.Expect(step).NotTo(BeNil())
			g.Expect(step.Message).To(Equal(Deleting))
			g.Expect(step.Delete).To(BeTrue())
			g.Expect(step.Machine.Name).To(Equal(tc.replaced))
			g.Expect(step.Record).To(Equal(facts.Remediation{Machine: tc.replaced, Timestamp: metav1.NewTime(noon)}))
		})
	}
}

func TestOneThatWasBegunWithComesFirst(t *testing.T) {
	for situation, tc := range map[string]struct {
		retries int32
		since   time.Time
	}{
		"its record stays as it is":            {since: noon.Add(-time.Minute)},
		"it is another failure than that time": {retries: 2, since: noon},
	} {
		t.Run(situation, func(t *testing.T) {
			g, w := NewWithT(t), newWorld(5)
			w.sicken(0, 3)
			w.fail(0, 3)
			w.recorded(w.ControlPlane, controlplanev1.RemediationInProgressAnnotation, "m3", time.Minute, tc.retries)
			step := w.decide()
			g.Expect(step.Delete).To(BeTrue())
			g.Expect(step.Machine.Name).To(Equal("m3"))
			g.Expect(step.Record.Machine).To(Equal("m3"))
			g.Expect(step.Record.RetryCount).To(BeZero())
			g.Expect(step.Record.Timestamp.Time).To(BeTemporally("==", tc.since))
		})
	}
}

func (w *world) mark(i int) { w.Machines[i].Annotations[clusterv1.RemediateMachineAnnotation] = "" }

// leave takes the Node and the member of the last host away.
func (w *world) leave(i int) {
	w.Machines[i].Spec.ProviderID = ""
	w.Workload.Nodes, w.Etcd.Nodes, w.Members, w.Revisions = w.Workload.Nodes[:i], w.Etcd.Nodes[:i], w.Members[:i], w.Revisions[:i]
}

func TestWhatKeepsAMachine(t *testing.T) {
	const cannot, deferred = controlplanev1.MachineCannotBeRemediatedReason, controlplanev1.MachineRemediationDeferredReason
	for situation, tc := range map[string]struct {
		hosts           int
		change          func(w *world)
		reason, message string
		unwatched       bool
	}{
		"two of three are down":                        {3, func(w *world) { w.sicken(0, 1); w.fail(0, 1) }, cannot, "etcd has lost its quorum", true},
		"two of three are down, one of them asked for": {3, func(w *world) { w.sicken(0); w.fail(0, 2) }, cannot, "etcd has lost its quorum", true},
		"a healthy one beside one that is down":        {3, func(w *world) { w.sicken(0); w.fail(1) }, cannot, "n1 does not answer", true},
		"etcd does not serve":                          {3, func(w *world) { w.sicken(0); w.Lost = true }, cannot, "it has most likely lost its quorum", true},
		"it cannot be told whose member it is":         {3, func(w *world) { w.sicken(0); w.Doubt = "the members do not agree" }, deferred, "the members do not agree", true},
		"a member is joining":                          {3, func(w *world) { w.sicken(0); w.Members[2].Learner = true }, deferred, "n2 is joining", true},
		"two nodes with fencing": {2, func(w *world) {
			w.sicken(0)
			w.fail(0)
			w.ControlPlane.Spec.Fencing, w.Topology = &controlplanev1.FencingSpec{}, configv1.DualReplicaTopologyMode
		}, cannot, "the nodes of the cluster fence each other (spec.fencing)", false},
		"a topology whose members are not touched": {3, func(w *world) { w.sicken(0); w.Topology = configv1.DualReplicaTopologyMode }, cannot, "topology", false},
		"a single node":                    {1, func(w *world) { w.sicken(0); w.fail() }, cannot, "a single node is the whole cluster", false},
		"the only one that is left of one": {3, func(w *world) { w.sicken(0); w.Machines = w.Machines[:1] }, cannot, "a single node", false},
		"it is not installed":              {3, func(w *world) { w.sicken(0); w.Phase = controlplanev1.InstallationFailed }, deferred, "not installed", false},
		"no host can take its place":       {3, func(w *world) { w.sicken(0); w.Progress.DayTwo = false }, deferred, "accepts hosts", false},
		"the cluster is being upgraded":    {3, func(w *world) { w.sicken(0); w.Workload.Upgrading = "4.20.1" }, deferred, "upgraded to 4.20.1", false},
		"the cluster was asked for an upgrade": {3, func(w *world) {
			w.sicken(0)
			w.Workload.Rollout = &facts.Rollout{Requested: facts.Update{Version: "4.20.1"}, Pending: true}
		}, deferred, "upgraded to 4.20.1", false},
		"an upgrade is about to come": {3, func(w *world) { w.sicken(0); w.Cluster.Spec.Topology.Version = "4.20.1" }, deferred, "4.20.1", false},
		"another is being deleted": {5, func(w *world) {
			w.sicken(0)
			w.Machines[3].DeletionTimestamp = ptr.To(metav1.NewTime(noon))
		}, deferred, "Machine m3 is being removed", true},
		"what is left of another is not cleaned up": {3, func(w *world) {
			w.sicken(0)
			w.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] = `[{"node":"n7"}]`
		}, deferred, "what is left", false},
		"what was recorded of hosts cannot be read": {3, func(w *world) {
			w.sicken(0)
			w.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] = "n7"
		}, cannot, controlplanev1.ReleasedHostsAnnotation, false},
		"what was recorded of the last remediation cannot be read": {3, func(w *world) {
			w.sicken(0)
			w.ControlPlane.Annotations[controlplanev1.RemediationInProgressAnnotation] = "{}"
		}, cannot, controlplanev1.RemediationInProgressAnnotation, false},
		"nothing holds its host": {3, func(w *world) {
			w.sicken(1)
			delete(w.Machines[1].Annotations, controlplanev1.EtcdMemberHookAnnotation)
		}, deferred, "our pre-terminate hook", false},
		"nobody knows whether the cluster is upgraded": {3, func(w *world) {
			w.sicken(1)
			w.Workload.Connected, w.Workload.UnreadSince = true, noon
		}, deferred, "it cannot be read whether the cluster is being upgraded", false},
		"one is to be made": {5, func(w *world) { w.sicken(0); w.Machines = w.Machines[:4] }, deferred, "1 Machine is missing", true},
		"another never was a Node": {5, func(w *world) {
			w.sicken(0)
			w.Machines[3].Status.NodeRef.Name = ""
		}, deferred, "waiting for the installation of the host of m3", true},
		"its own host is being installed": {3, func(w *world) { w.sicken(1); w.install(1, models.HostStatusInstallingInProgress) }, deferred, "waiting for the installation of the host of m1", false},
		"the host of another is prepared": {3, func(w *world) { w.sicken(1); w.install(2, models.HostStatusPreparingForInstallation) }, deferred, "waiting for the installation of the host of m2", true},
	} {
		t.Run(situation, func(t *testing.T) {
			g, w := NewWithT(t), newWorld(tc.hosts)
			tc.change(w)
			step := w.decide()
			g.Expect(step).NotTo(BeNil())
			g.Expect(step.Delete).To(BeFalse())
			g.Expect(step.Machine.Name).To(Or(Equal("m0"), Equal("m1")))
			g.Expect(step.Reason).To(Equal(tc.reason), step.Message)
			g.Expect(step.Message).To(ContainSubstring(tc.message))
			g.Expect(step.Unwatched).To(Equal(tc.unwatched))
		})
	}
}

// install makes assisted-service say that the host of a Machine is in a state.
func (w *world) install(i int, state string) {
	agent := aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{aiv1beta1.InfraEnvNameLabel: w.Machines[i].Name}}}
	agent.Status.DebugInfo.State = state
	w.Agents = append(w.Agents, agent)
}

func TestAnInstalledHostIsNotTakenForOneThatIsBeingInstalled(t *testing.T) {
	w := newWorld(3)
	w.sicken(1)
	w.install(1, models.HostStatusAddedToExistingCluster)
	w.install(2, models.HostStatusInstalled)
	NewWithT(t).Expect(w.decide().Delete).To(BeTrue())
}

func TestHowOftenMachinesAreReplacedBecauseOfTheSameFailure(t *testing.T) {
	limits := func(most, apart, healthy *int32) controlplanev1.RemediationSpec {
		return controlplanev1.RemediationSpec{MaxRetry: most, RetryPeriodSeconds: apart, MinHealthyPeriodSeconds: healthy}
	}
	for situation, tc := range map[string]struct {
		limits controlplanev1.RemediationSpec
		// before is how long ago the Machine before it was replaced, which was the retries-th in turn.
		before  time.Duration
		retries int32
		// counted is what is recorded; -1: it is not replaced, and looked at again after a time.
		counted int32
		after   time.Duration
		reason  string
	}{
		"there is no limit":                {before: time.Minute, retries: 7, counted: 8},
		"an hour later it is another":      {before: time.Hour, retries: 7, counted: 0},
		"just before the hour is over":     {before: time.Hour - time.Second, retries: 7, counted: 8},
		"a longer time counts as healthy":  {limits: limits(nil, nil, ptr.To[int32](7200)), before: time.Hour, retries: 7, counted: 8},
		"a shorter time counts as healthy": {limits: limits(ptr.To[int32](0), nil, ptr.To[int32](60)), before: time.Minute, retries: 7, counted: 0},
		"there may be no retry":            {limits: limits(ptr.To[int32](0), nil, nil), before: time.Minute, counted: -1, after: 59 * time.Minute, reason: controlplanev1.MachineCannotBeRemediatedReason},
		"there may be one more":            {limits: limits(ptr.To[int32](3), nil, nil), before: time.Minute, retries: 2, counted: 3},
		"there were enough":                {limits: limits(ptr.To[int32](3), nil, nil), before: time.Minute, retries: 3, counted: -1, after: 59 * time.Minute, reason: controlplanev1.MachineCannotBeRemediatedReason},
		"it is too early":                  {limits: limits(nil, ptr.To[int32](600), nil), before: time.Minute, counted: -1, after: 9 * time.Minute, reason: controlplanev1.MachineRemediationDeferredReason},
		"it is time":                       {limits: limits(nil, ptr.To[int32](600), nil), before: 10 * time.Minute, counted: 1},
		"too early, and there were enough": {limits: limits(ptr.To[int32](0), ptr.To[int32](600), nil), before: time.Minute, counted: -1, after: 9 * time.Minute, reason: controlplanev1.MachineRemediationDeferredReason},
		// The clock of the manager, by which it was recorded, was ahead then, or is behind now.
		"recorded in an hour: there were enough":                {limits: limits(ptr.To[int32](3), nil, nil), before: -time.Hour, retries: 3, counted: -1, after: 2 * time.Hour, reason: controlplanev1.MachineCannotBeRemediatedReason},
		"recorded in five minutes: it is too early":             {limits: limits(nil, ptr.To[int32](600), nil), before: -5 * time.Minute, counted: -1, after: 15 * time.Minute, reason: controlplanev1.MachineRemediationDeferredReason},
		"recorded in an hour: nobody knows whether it is early": {limits: limits(nil, ptr.To[int32](600), nil), before: -time.Hour, counted: 1},
		"recorded in a year: there may be one more":             {limits: limits(ptr.To[int32](3), nil, nil), before: -365 * 24 * time.Hour, retries: 2, counted: 3},
		"the period of retries is the longer":                   {limits: limits(nil, ptr.To[int32](7200), nil), before: 90 * time.Minute, counted: 0},
	} {
		for _, hosts := range []int{1, 2} { // of several etcd tells first which is the one
			t.Run(fmt.Sprintf("%s, %d unhealthy", situation, hosts), func(t *testing.T) {
				g, w := NewWithT(t), newWorld(5)
				w.ControlPlane.Spec.Remediation = tc.limits
				w.sicken([]int{0, 1}[:hosts]...)
				w.recorded(w.Machines[0], controlplanev1.RemediationForAnnotation, "m7", tc.before, tc.retries)
				step := w.decide()
				if tc.counted < 0 {
					g.Expect(step.Delete).To(BeFalse())
					g.Expect(step.Reason).To(Equal(tc.reason))
					g.Expect(step.After).To(Equal(tc.after))
					return
				}
				g.Expect(step.Delete).To(BeTrue(), step.Message)
				g.Expect(step.Record.RetryCount).To(Equal(tc.counted))
			})
		}
	}
}

func TestBooksThatCannotBeRead(t *testing.T) {
	g, w := NewWithT(t), newWorld(3)
	w.sicken(0)
	w.Machines[0].Annotations[controlplanev1.RemediationForAnnotation] = "m7"
	g.Expect(w.decide()).To(And(HaveField("Delete", false), HaveField("Message", ContainSubstring(controlplanev1.RemediationForAnnotation))))
}

func TestWhenARemediationIsOver(t *testing.T) {
	const inProgress = controlplanev1.RemediationInProgressAnnotation
	for situation, tc := range map[string]struct {
		change func(w *world)
		over   bool
	}{
		"nothing is recorded":                {func(*world) {}, false},
		"the Machine is still to be deleted": {func(w *world) { w.sicken(1); w.recorded(w.ControlPlane, inProgress, "m1", time.Minute, 0) }, false},
		"it is healthy, and was not deleted": {func(w *world) { w.recorded(w.ControlPlane, inProgress, "m1", time.Minute, 0) }, true},
		"it is being deleted": {func(w *world) {
			w.recorded(w.ControlPlane, inProgress, "m1", time.Minute, 0)
			w.Machines[1].DeletionTimestamp = ptr.To(metav1.NewTime(noon))
		}, false},
		"it is gone, and no other there yet": {func(w *world) {
			w.recorded(w.ControlPlane, inProgress, "m2", time.Minute, 0)
			w.Machines = w.Machines[:2]
		}, false},
		"another took its place, and its name": {func(w *world) {
			w.recorded(w.ControlPlane, inProgress, "m1", time.Minute, 0)
			w.recorded(w.Machines[1], controlplanev1.RemediationForAnnotation, "m1", time.Minute, 0)
		}, true},
		"another took its place, and its name, and is unhealthy too": {func(w *world) {
			w.recorded(w.ControlPlane, inProgress, "m1", time.Minute, 0)
			w.recorded(w.Machines[1], controlplanev1.RemediationForAnnotation, "m1", time.Minute, 0)
			w.sicken(1)
		}, true},
		"another took its place, a third is missing": {func(w *world) {
			w.recorded(w.ControlPlane, inProgress, "m7", time.Minute, 0)
			w.recorded(w.Machines[1], controlplanev1.RemediationForAnnotation, "m7", time.Minute, 0)
			w.Machines = w.Machines[:2]
		}, true},
		"it is gone, all others were made anew by a move": {func(w *world) {
			w.recorded(w.ControlPlane, inProgress, "m2", time.Minute, 0)
			w.Machines = w.Machines[:2]
			for _, m := range w.Machines {
				m.CreationTimestamp = metav1.NewTime(noon)
			}
		}, false},
		"it is gone, and no other is wanted": {func(w *world) {
			w.recorded(w.ControlPlane, inProgress, "m7", time.Minute, 0)
		}, true},
	} {
		t.Run(situation, func(t *testing.T) {
			w := newWorld(3)
			tc.change(w)
			NewWithT(t).Expect(Of(w.Facts, noon).Over()).To(Equal(tc.over))
		})
	}
}

func TestWhatIsNotKnownOfEtcd(t *testing.T) {
	g, w := NewWithT(t), newWorld(3)
	w.sicken(1)
	step := Of(w.Facts, noon).Unread(errors.New("it is not there").Error(), false)
	g.Expect(step.Machine.Name).To(Equal("m1"))
	g.Expect(step).To(And(HaveField("Reason", controlplanev1.MachineRemediationDeferredReason), HaveField("Message", HaveSuffix("it is not there")), HaveField("Unwatched", true)))
}

// OpenShift takes no host into etcd, and no healthy member is removed, while one is down. Whoever is down must not wait for that.
func TestAMemberThatIsDownWaitsForNobodyWhoWaitsForItsEnd(t *testing.T) {
	for situation, change := range map[string]func(w *world){
		"another is missing": func(w *world) {
			w.leave(4)
			w.Machines = w.Machines[:4]
		},
		"a healthy one is held": func(w *world) { w.Machines[2].DeletionTimestamp = ptr.To(metav1.NewTime(noon)) },
		"another never booted": func(w *world) {
			w.leave(4)
			w.Machines[4].Status.NodeRef.Name = ""
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g, w := NewWithT(t), newWorld(5)
			w.sicken(1)
			change(w)
			g.Expect(w.decide().Delete).To(BeFalse(), "its member is well")
			w.fail(1)
			step := w.decide()
			g.Expect(step.Delete).To(BeTrue(), step.Message)
		})
	}
}

func TestOneThatIsDownWaitsForAnotherThatIsDownAndGoes(t *testing.T) {
	g, w := NewWithT(t), newWorld(5)
	w.sicken(1)
	w.fail(1)
	w.fail(2)
	w.Machines[2].DeletionTimestamp = ptr.To(metav1.NewTime(noon))
	step := w.decide()
	g.Expect(step.Delete).To(BeFalse())
	g.Expect(step.Message).To(ContainSubstring("Machine m2 is being removed"))
}

// A learner holds nothing up: its host goes at once, and is waited for.
func TestOneThatIsDownWaitsForALearnerThatGoes(t *testing.T) {
	g, w := NewWithT(t), newWorld(5)
	w.sicken(1)
	w.fail(1)
	w.Members[2].Learner = true
	w.Machines[2].DeletionTimestamp = ptr.To(metav1.NewTime(noon))
	step := w.decide()
	g.Expect(step.Delete).To(BeFalse())
	g.Expect(step.Message).To(ContainSubstring("Machine m2 is being removed"))
}
