package remediation

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world is an installed cluster with Machines m0, m1... They were created one hour after the other, the first
// a day ago. n0 is the etcd leader.
type world struct {
	*facts.Facts
	workload.Etcd
}

func newWorld(hosts int) *world {
	w := &world{
		Facts: &facts.Facts{
			ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{
				Name:        "c1",
				Annotations: map[string]string{},
			}},
			Cluster: &clusterv1.Cluster{}, RebootFailed: sets.New[types.UID](),
		},
		Etcd: workload.Etcd{
			Topology:       configv1.HighlyAvailableTopologyMode,
			Operators:      []workload.ClusterOperator{{Name: "etcd", Available: true}, {Name: "kube-apiserver", Available: true}},
			LatestRevision: 7,
		},
	}
	w.ControlPlane.Spec.Replicas, w.ControlPlane.Spec.DistributionVersion = ptr.To(int32(hosts)), "4.19.3"
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
		Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(i-24) * time.Hour)),
		Annotations: map[string]string{controlplanev1.EtcdMemberHookAnnotation: ""},
	}}
	m.Spec.ProviderID, m.Status.NodeRef.Name = "metal3://"+node, node
	w.Machines = append(w.Machines, m)
	known := workload.Node{Name: node, UID: types.UID(node), ProviderID: "metal3://" + node}
	w.Workload.Nodes = append(w.Workload.Nodes, known)
	w.Members = append(w.Members, workload.EtcdMember{ID: uint64(i + 1), Name: node, Hosts: []string{node}})
	w.Etcd.Nodes = append(w.Etcd.Nodes, workload.ControlPlaneNode{Node: known, Addresses: []string{node}})
	w.Revisions = append(w.Revisions, workload.Revision{Node: node, Current: 7})
}

// sicken makes a MachineHealthCheck request the remediation of Machines.
func (w *world) sicken(which ...int) {
	for _, i := range which {
		conditions.Set(w.Machines[i], metav1.Condition{
			Type:   clusterv1.MachineHealthCheckSucceededCondition,
			Status: metav1.ConditionFalse,
			Reason: "x",
		})
		conditions.Set(w.Machines[i], metav1.Condition{
			Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse,
			Reason: "x",
		})
	}
}

// plan sets the version of the control plane, that of the present step, and the last one of the topology.
func (w *world) plan(version, step, last string) {
	w.ControlPlane.Spec.Version, w.Cluster.Spec.Topology.Version = version, last
	w.Cluster.Annotations = map[string]string{clusterv1.ClusterTopologyUpgradeStepAnnotation: step}
}

// fail makes members unresponsive.
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

func (w *world) released() (*removal.Situation, error) { return removal.Of(w.Facts) }

// decide returns the step as the reconciler does, or nil.
func (w *world) decide() *Step {
	situation := Of(w.Facts, noon, w.released)
	if len(situation.Machines) == 0 {
		return nil
	}
	if step := situation.Before(); step != nil {
		return step
	}
	step := situation.Decide(&w.Etcd)
	return &step
}

func TestDelete(t *testing.T) {
	for situation, tc := range map[string]struct {
		hosts    int
		change   func(w *world)
		replaced string
	}{
		"all healthy":                  {3, func(*world) {}, ""},
		"one of three, member down":    {3, func(w *world) { w.sicken(1); w.fail(1) }, "m1"},
		"one of three, member healthy": {3, func(w *world) { w.sicken(2) }, "m2"},
		"unhealthy, remediated by another controller": {3, func(w *world) {
			w.sicken(1)
			conditions.Delete(w.Machines[1], clusterv1.MachineOwnerRemediatedCondition)
		}, ""},
		"reboot without success": {3, func(w *world) {
			w.sicken(1)
			conditions.Delete(w.Machines[1], clusterv1.MachineOwnerRemediatedCondition)
			w.RebootFailed.Insert("m1")
		}, "m1"},
		"healthy again": {3, func(w *world) {
			w.sicken(1)
			conditions.Set(w.Machines[1], metav1.Condition{
				Type:   clusterv1.MachineHealthCheckSucceededCondition,
				Status: metav1.ConditionTrue,
				Reason: "x",
			})
		}, ""},
		"annotation skip-remediation": {3, func(w *world) {
			w.sicken(1)
			w.Machines[1].Annotations[clusterv1.MachineSkipRemediationAnnotation] = ""
		}, ""},
		"paused": {3, func(w *world) { w.sicken(1); w.Machines[1].Annotations[clusterv1.PausedAnnotation] = "" }, ""},
		"older of two": {5, func(w *world) {
			w.sicken(1, 2)
			w.Machines[1].CreationTimestamp = w.Machines[3].CreationTimestamp
		}, "m2"},
		"two of the same age: by name": {5, func(w *world) {
			w.sicken(1, 2)
			w.Machines[1].CreationTimestamp = w.Machines[2].CreationTimestamp
		}, "m1"},
		"two: member down first": {5, func(w *world) { w.sicken(0, 3); w.fail(3) }, "m3"},
		"two: without Node first": {
			5, func(w *world) { w.sicken(0, 4); w.fail(0); w.Machines[4].Status.NodeRef.Name = ""; w.leave(4) },
			"m4",
		},
		"two: marked first, blocked": {5, func(w *world) { w.sicken(0, 3); w.fail(0); w.mark(3) }, ""},
		"two failed: marked first":   {5, func(w *world) { w.sicken(0, 3); w.fail(0, 3); w.mark(3) }, "m3"},
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

func TestRecordedMachineIsFirst(t *testing.T) {
	for situation, tc := range map[string]struct {
		retries int32
		since   time.Time
	}{
		"record is kept":  {since: noon.Add(-time.Minute)},
		"another failure": {retries: 2, since: noon},
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

// leave removes the Node and the member of the last host.
func (w *world) leave(i int) {
	w.Machines[i].Spec.ProviderID = ""
	w.Workload.Nodes, w.Etcd.Nodes, w.Members, w.Revisions = w.Workload.Nodes[:i], w.Etcd.Nodes[:i], w.Members[:i], w.Revisions[:i]
}

func TestBlockers(t *testing.T) {
	const cannot, deferred = controlplanev1.MachineCannotBeRemediatedReason, controlplanev1.MachineRemediationDeferredReason
	for situation, tc := range map[string]struct {
		hosts           int
		change          func(w *world)
		reason, message string
		unwatched       bool
	}{
		"two of three down":                {3, func(w *world) { w.sicken(0, 1); w.fail(0, 1) }, cannot, "etcd has lost its quorum", true},
		"two of three down, one unhealthy": {3, func(w *world) { w.sicken(0); w.fail(0, 2) }, cannot, "etcd has lost its quorum", true},
		"healthy member, another is down":  {3, func(w *world) { w.sicken(0); w.fail(1) }, cannot, "n1 does not answer", true},
		"etcd is lost": {
			3, func(w *world) { w.sicken(0); w.Lost = true }, cannot,
			"it has most likely lost its quorum", true,
		},
		"members in doubt": {
			3, func(w *world) { w.sicken(0); w.Doubt = "the members do not agree" }, deferred,
			"the members do not agree",
			true,
		},
		"a member is joining": {3, func(w *world) { w.sicken(0); w.Members[2].Learner = true }, deferred, "n2 is joining", true},
		"two nodes with fencing": {2, func(w *world) {
			w.sicken(0)
			w.fail(0)
			w.ControlPlane.Spec.Fencing, w.Topology = &controlplanev1.FencingSpec{}, configv1.DualReplicaTopologyMode
		}, cannot, "the nodes of the cluster fence each other (spec.fencing)", false},
		"topology not supported": {
			3, func(w *world) { w.sicken(0); w.Topology = configv1.DualReplicaTopologyMode }, cannot, "topology",
			false,
		},
		"a single node":          {1, func(w *world) { w.sicken(0); w.fail() }, cannot, "a single node is the whole cluster", false},
		"last remaining Machine": {3, func(w *world) { w.sicken(0); w.Machines = w.Machines[:1] }, cannot, "a single node", false},
		"not installed": {
			3, func(w *world) { w.sicken(0); w.Phase = controlplanev1.InstallationFailed }, deferred, "not installed",
			false,
		},
		"cluster accepts no hosts": {
			3, func(w *world) { w.sicken(0); w.Progress.DayTwo = false }, deferred,
			"does not accept a replacement host", false,
		},
		"being upgraded": {3, func(w *world) { w.sicken(0); w.Workload.Upgrading = "4.20.1" }, deferred, "upgraded to 4.20.1", false},
		"upgrade requested": {3, func(w *world) {
			w.sicken(0)
			w.Workload.Rollout = &workload.Rollout{Requested: workload.Update{Version: "4.20.1"}, Pending: true}
		}, deferred, "upgraded to 4.20.1", false},
		"upgrade planned in the topology": {
			3, func(w *world) { w.sicken(0); w.plan("v1.32.7", "", "v1.33.5") }, deferred,
			"sets version v1.33.5 of the Cluster's topology in the control plane; see the condition TopologyReconciled",
			false,
		},
		"upgrade over several minor versions, the first step is planned": {
			3, func(w *world) { w.sicken(0); w.plan("v1.31.2", "v1.32.7", "v1.33.5") }, deferred, "delete the Machine, which wipes the host", false,
		},
		"upgrade over several minor versions, the cluster is upgraded to the first": {
			3, func(w *world) {
				w.sicken(0)
				w.plan("v1.32.7", "v1.32.7", "v1.33.5")
				w.Workload.Upgrading = "4.19.10"
			}, deferred, "the cluster is being upgraded to 4.19.10", false,
		},
		"another Machine being deleted": {5, func(w *world) {
			w.sicken(0)
			w.Machines[3].DeletionTimestamp = ptr.To(metav1.NewTime(noon))
		}, deferred, "removal of Machine m3", true},
		"cleanup of another host": {3, func(w *world) {
			w.sicken(0)
			w.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] = `[{"node":"n7"}]`
		}, deferred, "waiting for the cleanup", false},
		"invalid record of hosts": {3, func(w *world) {
			w.sicken(0)
			w.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] = "n7"
		}, cannot, controlplanev1.ReleasedHostsAnnotation, false},
		"invalid record of the last remediation": {3, func(w *world) {
			w.sicken(0)
			w.ControlPlane.Annotations[controlplanev1.RemediationInProgressAnnotation] = "{}"
		}, cannot, controlplanev1.RemediationInProgressAnnotation, false},
		"no hook": {3, func(w *world) {
			w.sicken(1)
			delete(w.Machines[1].Annotations, controlplanev1.EtcdMemberHookAnnotation)
		}, deferred, "no pre-terminate hook of this provider", false},
		"state of upgrades unknown": {3, func(w *world) {
			w.sicken(1)
			w.Workload.Connected, w.Workload.UnreadSince = true, noon
		}, deferred, "the state of upgrades of the cluster cannot be read", false},
		"etcd has an alarm": {3, func(w *world) {
			w.sicken(0)
			w.Alarms = []workload.EtcdAlarm{{Kind: workload.EtcdNoSpace, Member: 1}}
		}, deferred, "alarm NOSPACE", true},
		"Node of the unhealthy Machine has another identity": {3, func(w *world) {
			w.sicken(0)
			w.Nodes[0].ProviderID = "metal3://another"
		}, deferred, "runs on another host", true},
		"Machine missing": {5, func(w *world) { w.sicken(0); w.Machines = w.Machines[:4] }, deferred, "1 Machine is missing", true},
		"another Machine without Node": {5, func(w *world) {
			w.sicken(0)
			w.Machines[3].Status.NodeRef.Name = ""
		}, deferred, "waiting for the installation of the host of m3", true},
		"own host being installed": {
			3, func(w *world) { w.sicken(1); w.install(1, aiv1beta1.HostStatusInstallingInProgress) }, deferred,
			"waiting for the installation of the host of m1", false,
		},
		"another host being prepared": {
			3, func(w *world) { w.sicken(1); w.install(2, aiv1beta1.HostStatusPreparingForInstallation) },
			deferred,
			"waiting for the installation of the host of m2", true,
		},
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

// install sets the state of the host of a Machine in assisted-service.
func (w *world) install(i int, state string) {
	agent := aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{aiv1beta1.InfraEnvNameLabel: w.Machines[i].Name}}}
	agent.Status.DebugInfo.State = state
	w.Agents = append(w.Agents, agent)
}

func TestInstalledHostDoesNotBlock(t *testing.T) {
	w := newWorld(3)
	w.sicken(1)
	w.install(1, aiv1beta1.HostStatusAddedToExistingCluster)
	w.install(2, aiv1beta1.HostStatusInstalled)
	NewWithT(t).Expect(w.decide().Delete).To(BeTrue())
}

// The release of a step may wait for a decision of the user. A dead host would block it afterwards, too.
func TestVersionOfStepDoesNotBlock(t *testing.T) {
	for step, last := range map[string]string{"v1.32.7": "v1.33.5", "": "v1.32.7"} {
		w := newWorld(3)
		w.sicken(0)
		w.plan("v1.32.7", step, last)
		NewWithT(t).Expect(w.decide()).To(HaveField("Delete", true), "step %q, last version %s", step, last)
	}
}

func TestRetryLimits(t *testing.T) {
	limits := func(most, apart, healthy *int32) controlplanev1.RemediationSpec {
		return controlplanev1.RemediationSpec{MaxRetry: most, RetryPeriodSeconds: apart, MinHealthyPeriodSeconds: healthy}
	}
	for situation, tc := range map[string]struct {
		limits controlplanev1.RemediationSpec
		// before is how long ago the former Machine was replaced. retries is its retry count.
		before  time.Duration
		retries int32
		// counted is the recorded retry count. -1: the Machine is not replaced, and decided again after a time.
		counted int32
		after   time.Duration
		reason  string
	}{
		"no limit":                       {before: time.Minute, retries: 7, counted: 8},
		"after an hour: another failure": {before: time.Hour, retries: 7, counted: 0},
		"just before the hour ends":      {before: time.Hour - time.Second, retries: 7, counted: 8},
		"longer healthy period":          {limits: limits(nil, nil, ptr.To[int32](7200)), before: time.Hour, retries: 7, counted: 8},
		"shorter healthy period":         {limits: limits(ptr.To[int32](0), nil, ptr.To[int32](60)), before: time.Minute, retries: 7, counted: 0},
		"no retry permitted": {
			limits: limits(ptr.To[int32](0), nil, nil), before: time.Minute, counted: -1, after: 59 * time.Minute,
			reason: controlplanev1.MachineCannotBeRemediatedReason,
		},
		"one retry left": {limits: limits(ptr.To[int32](3), nil, nil), before: time.Minute, retries: 2, counted: 3},
		"no retry left": {
			limits: limits(ptr.To[int32](3), nil, nil), before: time.Minute, retries: 3, counted: -1,
			after:  59 * time.Minute,
			reason: controlplanev1.MachineCannotBeRemediatedReason,
		},
		"too early": {
			limits: limits(nil, ptr.To[int32](600), nil), before: time.Minute, counted: -1, after: 9 * time.Minute,
			reason: controlplanev1.MachineRemediationDeferredReason,
		},
		"retry period over": {limits: limits(nil, ptr.To[int32](600), nil), before: 10 * time.Minute, counted: 1},
		"too early, no retry left": {
			limits: limits(ptr.To[int32](0), ptr.To[int32](600), nil), before: time.Minute, counted: -1,
			after: 9 * time.Minute, reason: controlplanev1.MachineRemediationDeferredReason,
		},
		// The clock of the manager that wrote the record was ahead, or the present one is behind.
		"recorded in an hour: no retry left": {
			limits: limits(ptr.To[int32](3), nil, nil), before: -time.Hour, retries: 3, counted: -1,
			after: 2 * time.Hour, reason: controlplanev1.MachineCannotBeRemediatedReason,
		},
		"recorded in five minutes: too early": {
			limits: limits(nil, ptr.To[int32](600), nil), before: -5 * time.Minute, counted: -1,
			after: 15 * time.Minute, reason: controlplanev1.MachineRemediationDeferredReason,
		},
		"recorded in an hour: retry period ignored": {limits: limits(nil, ptr.To[int32](600), nil), before: -time.Hour, counted: 1},
		"recorded in a year: one retry left": {
			limits: limits(ptr.To[int32](3), nil, nil), before: -365 * 24 * time.Hour, retries: 2,
			counted: 3,
		},
		"retry period longer than healthy period": {limits: limits(nil, ptr.To[int32](7200), nil), before: 90 * time.Minute, counted: 0},
	} {
		for _, hosts := range []int{1, 2} { // with several Machines etcd decides the order
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

func TestInvalidRecord(t *testing.T) {
	g, w := NewWithT(t), newWorld(3)
	w.sicken(0)
	w.Machines[0].Annotations[controlplanev1.RemediationForAnnotation] = "m7"
	g.Expect(w.decide()).To(And(HaveField("Delete", false), HaveField("Message",
		ContainSubstring(controlplanev1.RemediationForAnnotation))))
}

func TestOver(t *testing.T) {
	const inProgress = controlplanev1.RemediationInProgressAnnotation
	for situation, tc := range map[string]struct {
		change func(w *world)
		over   bool
	}{
		"no record":                    {func(*world) {}, false},
		"Machine not deleted yet":      {func(w *world) { w.sicken(1); w.recorded(w.ControlPlane, inProgress, "m1", time.Minute, 0) }, false},
		"Machine healthy, not deleted": {func(w *world) { w.recorded(w.ControlPlane, inProgress, "m1", time.Minute, 0) }, true},
		"Machine being deleted": {func(w *world) {
			w.recorded(w.ControlPlane, inProgress, "m1", time.Minute, 0)
			w.Machines[1].DeletionTimestamp = ptr.To(metav1.NewTime(noon))
		}, false},
		"Machine deleted, no replacement yet": {func(w *world) {
			w.recorded(w.ControlPlane, inProgress, "m2", time.Minute, 0)
			w.Machines = w.Machines[:2]
		}, false},
		"replacement with the same name": {func(w *world) {
			w.recorded(w.ControlPlane, inProgress, "m1", time.Minute, 0)
			w.recorded(w.Machines[1], controlplanev1.RemediationForAnnotation, "m1", time.Minute, 0)
		}, true},
		"unhealthy replacement with the same name": {func(w *world) {
			w.recorded(w.ControlPlane, inProgress, "m1", time.Minute, 0)
			w.recorded(w.Machines[1], controlplanev1.RemediationForAnnotation, "m1", time.Minute, 0)
			w.sicken(1)
		}, true},
		"replacement exists, a third Machine missing": {func(w *world) {
			w.recorded(w.ControlPlane, inProgress, "m7", time.Minute, 0)
			w.recorded(w.Machines[1], controlplanev1.RemediationForAnnotation, "m7", time.Minute, 0)
			w.Machines = w.Machines[:2]
		}, true},
		"Machine deleted, others recreated by a move": {func(w *world) {
			w.recorded(w.ControlPlane, inProgress, "m2", time.Minute, 0)
			w.Machines = w.Machines[:2]
			for _, m := range w.Machines {
				m.CreationTimestamp = metav1.NewTime(noon)
			}
		}, false},
		"Machine deleted, no replacement needed": {func(w *world) {
			w.recorded(w.ControlPlane, inProgress, "m7", time.Minute, 0)
		}, true},
	} {
		t.Run(situation, func(t *testing.T) {
			w := newWorld(3)
			tc.change(w)
			NewWithT(t).Expect(Of(w.Facts, noon, w.released).Over()).To(Equal(tc.over))
		})
	}
}

func TestUnread(t *testing.T) {
	g, w := NewWithT(t), newWorld(3)
	w.sicken(1)
	step := Of(w.Facts, noon, w.released).Unread(errors.New("it does not exist").Error(), false)
	g.Expect(step.Machine.Name).To(Equal("m1"))
	g.Expect(step).To(And(HaveField("Reason", controlplanev1.MachineRemediationDeferredReason),
		HaveField("Message", HaveSuffix("it does not exist")), HaveField("Unwatched", true)))
}

// While a member is down, OpenShift adds no host to etcd, and no healthy member is removed. The replacement
// of the failed member must not wait for that.
func TestFailedMemberDoesNotWaitForBlockedChanges(t *testing.T) {
	for situation, change := range map[string]func(w *world){
		"Machine missing": func(w *world) {
			w.leave(4)
			w.Machines = w.Machines[:4]
		},
		"healthy Machine being deleted": func(w *world) { w.Machines[2].DeletionTimestamp = ptr.To(metav1.NewTime(noon)) },
		"Machine without Node": func(w *world) {
			w.leave(4)
			w.Machines[4].Status.NodeRef.Name = ""
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g, w := NewWithT(t), newWorld(5)
			w.sicken(1)
			change(w)
			g.Expect(w.decide().Delete).To(BeFalse(), "its member is healthy")
			w.fail(1)
			step := w.decide()
			g.Expect(step.Delete).To(BeTrue(), step.Message)
		})
	}
}

func TestFailedMemberWaitsForRemovalOfAnotherFailedMember(t *testing.T) {
	g, w := NewWithT(t), newWorld(5)
	w.sicken(1)
	w.fail(1)
	w.fail(2)
	w.Machines[2].DeletionTimestamp = ptr.To(metav1.NewTime(noon))
	step := w.decide()
	g.Expect(step.Delete).To(BeFalse())
	g.Expect(step.Message).To(ContainSubstring("removal of Machine m2"))
}

// A learner blocks nothing: its host is deleted first.
func TestFailedMemberWaitsForRemovalOfLearner(t *testing.T) {
	g, w := NewWithT(t), newWorld(5)
	w.sicken(1)
	w.fail(1)
	w.Members[2].Learner = true
	w.Machines[2].DeletionTimestamp = ptr.To(metav1.NewTime(noon))
	step := w.decide()
	g.Expect(step.Delete).To(BeFalse())
	g.Expect(step.Message).To(ContainSubstring("removal of Machine m2"))
}
