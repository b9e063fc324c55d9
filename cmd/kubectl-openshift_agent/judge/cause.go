// Package judge decides from a snapshot which state a cluster or Machine has, and names the first cause of that state.
// It has no client and no clock.
package judge

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// State is the state of a cluster or Machine.
type State string

// States, the most urgent first.
const (
	// Failed requires an action of the user. Nothing is retried.
	Failed State = "Failed"
	// Blocked requires an action of the user.
	Blocked State = "Blocked"
	// Slow means that a step takes longer than usual.
	Slow State = "Slow"
	// Unknown means that objects cannot be read, and the readable objects report no cause.
	Unknown State = "Unknown"
	// Paused means that the Cluster or an object of it is paused, or that its installation is on hold, until the user ends it.
	Paused State = "Paused"
	// Progressing means that controllers or hosts work, and no action is required.
	Progressing State = "Progressing"
	// Ready means that nothing is left to do.
	Ready State = "Ready"
)

var byUrgency = []State{Failed, Blocked, Slow, Unknown, Paused, Progressing, Ready}

// Compare returns a negative number if state s is more urgent than the other state.
func (s State) Compare(other State) int {
	return cmp.Compare(slices.Index(byUrgency, s), slices.Index(byUrgency, other))
}

// NeedsAttention reports whether the object needs its user: without an action nothing changes, or may not change.
func (s State) NeedsAttention() bool { return s.Compare(Paused) <= 0 }

// Object names an object of the management cluster.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the object as in messages: "Machine lab/m0".
func (o Object) String() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

// Cause is why an object has its state.
type Cause struct {
	State State `json:"state"`
	// Object has the Condition with Reason and Message.
	Object    Object `json:"object"`
	Condition string `json:"condition,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
	// Host is the name of the host of the Machine that Object belongs to. It is empty if no host is known.
	Host string `json:"host,omitempty"`
	// Since is the start of the current step, as far as it is known.
	Since *metav1.Time `json:"since,omitempty"`
	// UsualSeconds is the time that the step takes at most, usually. It is zero if there is no usual time.
	UsualSeconds int64 `json:"usualSeconds,omitempty"`
	// ReadFrom are the objects from which the cause was concluded.
	ReadFrom []Object `json:"readFrom,omitempty"`

	// follows is true if another object has the reason of the wait.
	follows bool
}

// Usual returns the time that the step takes at most, usually. It is zero if there is no usual time.
func (c *Cause) Usual() time.Duration { return time.Duration(c.UsualSeconds) * time.Second }

// Cluster returns the first cause of the state of a cluster, which is the most urgent one. Of several equally urgent causes
// it returns the one that the others follow from.
func Cluster(c *snapshot.Cluster) Cause {
	j := judgment{now: c.Time}
	object := Object{Kind: snapshot.KindCluster, Namespace: c.Namespace, Name: c.Name}
	if ptr.Deref(c.Spec.Paused, false) {
		return Cause{
			State: Paused, Object: object, Reason: clusterv1.PausedReason, ReadFrom: []Object{object},
			Message: "Cluster " + c.Name + " is paused: nothing is changed. Set spec.paused to false to continue.",
		}
	}
	if c.DeletionTimestamp.IsZero() {
		j.cluster(object, c.Cluster)
		j.controlPlane(object, c)
		for i := range c.Machines {
			j.machine(&c.Machines[i])
		}
		j.fallback(object, c)
	} else {
		j.deletion(object, c)
	}
	return j.first(object, notReadable(c.NotReadable, snapshot.KindControlPlane, snapshot.KindMachine, snapshot.KindConfig))
}

// Machine returns the first cause of the state of a Machine of a cluster.
func Machine(c *snapshot.Cluster, m *snapshot.Machine) Cause {
	j := judgment{now: c.Time}
	j.machine(m)
	return j.first(Object{Kind: snapshot.KindMachine, Namespace: m.Namespace, Name: m.Name}, notReadable(c.NotReadable, snapshot.KindConfig))
}

// judgment collects the causes for the state of an object.
type judgment struct {
	now    metav1.Time
	causes []Cause
}

func (j *judgment) add(c Cause) {
	if len(c.ReadFrom) == 0 {
		c.ReadFrom = []Object{c.Object}
	}
	j.causes = append(j.causes, c)
}

// first returns the first cause. If kinds cannot be read, the object is neither Ready nor Progressing: a hidden object may
// have a more urgent cause.
func (j *judgment) first(object Object, hidden string) Cause {
	if hidden != "" {
		j.add(Cause{State: Unknown, Object: object, Message: "The cause is unknown: " + hidden})
	}
	if len(j.causes) == 0 {
		return Cause{State: Ready, Object: object, ReadFrom: []Object{object}}
	}
	return slices.MinFunc(j.causes, func(a, b Cause) int {
		follows := func(c Cause) int {
			if c.follows {
				return 1
			}
			return 0
		}
		return cmp.Or(a.State.Compare(b.State), cmp.Compare(follows(a), follows(b)))
	})
}

// notReadable describes which of the kinds cannot be read.
func notReadable(causes map[string]string, kinds ...string) string {
	for _, kind := range kinds {
		if cause, found := causes[kind]; found {
			return kind + "s are not readable (" + cause + ")."
		}
	}
	return ""
}

// condition adds the cause that a condition reports, since the start of its step.
func (j *judgment) condition(object Object, c *metav1.Condition, since metav1.Time) {
	expected, isWait := waitFor(object.Kind, c)
	j.classified(object, c, since, expected, isWait)
}

// classified adds the cause that a condition reports. isWait is false if the user has to act.
func (j *judgment) classified(object Object, c *metav1.Condition, since metav1.Time, expected wait, isWait bool) {
	cause := Cause{
		Object: object, Condition: c.Type, Reason: c.Reason, Message: c.Message, Since: &since,
		UsualSeconds: int64(expected.usual / time.Second), follows: expected.follows || refers(c),
	}
	switch {
	case slices.Contains(failures, c.Reason):
		cause.State = Failed
	case c.Reason == controlplanev1.InstallationOnHoldReason:
		cause.State = Paused
	case c.Reason == controlplanev1.HostsLaggingReason:
		cause.State = Slow
	case !isWait:
		cause.State = Blocked
	case expected.usual > 0 && j.now.Sub(since.Time) > expected.usual:
		cause.State = Slow
		cause.follows = c.Type == controlplanev1.InstalledCondition // a slow host is the cause
	default:
		cause.State = Progressing
	}
	j.add(cause)
}

// refers reports whether a condition has the reason of Installed, and refers to Installed for the cause.
func refers(c *metav1.Condition) bool {
	return strings.HasSuffix(c.Message, "see the condition "+controlplanev1.InstalledCondition)
}

// Unmet reports whether a condition exists and does not have its healthy status.
func Unmet(c *metav1.Condition) bool {
	return c != nil && (c.Status == metav1.ConditionTrue) == slices.Contains(negative, c.Type)
}

// negative are the conditions whose healthy status is False.
var negative = []string{
	clusterv1.DeletingCondition, clusterv1.PausedCondition, clusterv1.RollingOutCondition, clusterv1.ScalingUpCondition,
	clusterv1.ScalingDownCondition, clusterv1.RemediatingCondition, clusterv1.MachineUpdatingCondition,
	controlplanev1.HostsReleasingCondition,
}

// stepStart returns when the step of a condition began: the last transition of the condition and of the conditions that
// an object passes before. A condition keeps its transition time when only its reason changes.
func stepStart(created metav1.Time, conditions []metav1.Condition, order []string, current *metav1.Condition) metav1.Time {
	start := created
	later := func(t metav1.Time) {
		if start.Before(&t) {
			start = t
		}
	}
	later(current.LastTransitionTime)
	for _, passed := range order {
		if passed == current.Type {
			break
		}
		if c := meta.FindStatusCondition(conditions, passed); c != nil && c.Status == metav1.ConditionTrue {
			later(c.LastTransitionTime)
		}
	}
	return start
}

// cluster adds the causes that Cluster API reports of a Cluster and that no object of the providers repeats.
func (j *judgment) cluster(object Object, c *clusterv1.Cluster) {
	for _, kind := range []string{clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterTopologyReconciledCondition} {
		if condition := meta.FindStatusCondition(c.Status.Conditions, kind); Unmet(condition) {
			j.condition(object, condition, condition.LastTransitionTime)
		}
	}
}

// installationStages are the conditions that a control plane passes one after the other until it is installed.
var installationStages = []string{
	controlplanev1.ReleaseImageResolvedCondition, controlplanev1.MachinesCreatedCondition, controlplanev1.InstalledCondition,
	controlplanev1.KubeconfigAvailableCondition, controlplanev1.InitializedCondition,
}

// stages are the conditions of a control plane, in the order in which one follows from the other.
var stages = append(slices.Clone(installationStages),
	controlplanev1.RegistrationHealthyCondition, controlplanev1.ControlPlaneComponentsHealthyCondition,
	controlplanev1.EtcdClusterHealthyCondition,
	controlplanev1.RemediatingCondition, controlplanev1.HostsReleasingCondition, controlplanev1.ScalingDownCondition,
	controlplanev1.ScalingUpCondition, controlplanev1.MachinesUpToDateCondition, controlplanev1.RollingOutCondition,
	controlplanev1.CertificatesApprovedCondition, controlplanev1.HostsProgressingCondition, controlplanev1.AvailableCondition,
)

// workloadHealth are the conditions about the programs of a cluster, which start one after the other during the
// installation.
var workloadHealth = []string{controlplanev1.ControlPlaneComponentsHealthyCondition, controlplanev1.EtcdClusterHealthyCondition}

// unprocessed adds that the provider has not processed the spec of an object: the conditions belong to an older spec.
func (j *judgment) unprocessed(object Object, generation, observed int64) {
	if observed < generation {
		j.add(Cause{
			State: Progressing, Object: object, Reason: "WaitingForManager", follows: true,
			Message: "The provider has not processed the latest change of the spec yet. If this stays, check that its manager runs.",
		})
	}
}

// controlPlane adds the causes that the control plane reports.
func (j *judgment) controlPlane(cluster Object, c *snapshot.Cluster) {
	cp := c.ControlPlane
	if cp == nil {
		if _, hidden := c.NotReadable[snapshot.KindControlPlane]; !hidden && c.Spec.ControlPlaneRef.Name != "" {
			j.add(Cause{
				State: Blocked, Object: cluster, Reason: clusterv1.ObjectDoesNotExistReason,
				Message: snapshot.KindControlPlane + " " + c.Spec.ControlPlaneRef.Name + " does not exist. Create it, or correct spec.controlPlaneRef.",
			})
		}
		return
	}
	object := Object{Kind: snapshot.KindControlPlane, Namespace: cp.Namespace, Name: cp.Name}
	j.paused(object, cp.Status.Conditions)
	j.unprocessed(object, cp.Generation, cp.Status.ObservedGeneration)
	installed := meta.IsStatusConditionTrue(cp.Status.Conditions, controlplanev1.InstalledCondition)
	for _, kind := range stages {
		condition := meta.FindStatusCondition(cp.Status.Conditions, kind)
		if !Unmet(condition) {
			continue
		}
		since := condition.LastTransitionTime
		if !installed && slices.Contains(workloadHealth, kind) {
			j.classified(object, condition, since, following, true)
			continue
		}
		if slices.Contains(installationStages, kind) {
			since = stepStart(cp.CreationTimestamp, cp.Status.Conditions, installationStages, condition)
		}
		if start := cp.Status.Installation.StartTime; kind == controlplanev1.InstalledCondition && start != nil {
			since = *start
		}
		j.condition(object, condition, since)
	}
}

// paused adds that an object is paused, as by its annotation.
func (j *judgment) paused(object Object, conditions []metav1.Condition) {
	if c := meta.FindStatusCondition(conditions, clusterv1.PausedCondition); Unmet(c) {
		j.add(Cause{State: Paused, Object: object, Condition: c.Type, Reason: c.Reason, Message: c.Message, Since: &c.LastTransitionTime})
	}
}

// fallback adds what Cluster API reports of the Cluster as a whole, in case no other object has the cause.
func (j *judgment) fallback(object Object, c *snapshot.Cluster) {
	condition := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterAvailableCondition)
	switch {
	case condition == nil:
		j.add(Cause{State: Progressing, Object: object, Message: "Waiting for Cluster API to report the Cluster.", follows: true})
	case Unmet(condition):
		j.add(Cause{
			State: Progressing, Object: object, Condition: condition.Type, Reason: condition.Reason, Message: condition.Message,
			Since: &condition.LastTransitionTime, follows: true,
		})
	}
}

// deletion adds what the deletion of a Cluster waits for.
func (j *judgment) deletion(object Object, c *snapshot.Cluster) {
	for i := range c.Machines {
		j.machine(&c.Machines[i])
	}
	if cp := c.ControlPlane; cp != nil {
		j.deleting(Object{Kind: snapshot.KindControlPlane, Namespace: cp.Namespace, Name: cp.Name}, cp.DeletionTimestamp, cp.Status.Conditions)
	}
	j.deleting(object, c.DeletionTimestamp, c.Status.Conditions)
	j.add(Cause{
		State: Progressing, Object: object, Condition: clusterv1.DeletingCondition, Reason: clusterv1.DeletingReason,
		Message: "The Cluster is being deleted.", Since: c.DeletionTimestamp, follows: true,
	})
}

// deleting adds what the deletion of an object waits for.
func (j *judgment) deleting(object Object, deleted *metav1.Time, conditions []metav1.Condition) {
	if c := meta.FindStatusCondition(conditions, clusterv1.DeletingCondition); Unmet(c) && deleted != nil {
		j.condition(object, c, *deleted)
	}
}

// machine adds the causes that a Machine and its config report.
func (j *judgment) machine(m *snapshot.Machine) {
	object := Object{Kind: snapshot.KindMachine, Namespace: m.Namespace, Name: m.Name}
	before := len(j.causes)
	if m.Config != nil {
		j.config(m)
	}
	if !m.DeletionTimestamp.IsZero() {
		j.deleting(object, m.DeletionTimestamp, m.Status.Conditions)
	} else {
		j.node(object, m)
	}
	for i := range j.causes[before:] {
		j.causes[before+i].ReadFrom, j.causes[before+i].Host = readFrom(m), HostOf(m)
	}
}

// HostOf returns the name of the host of a Machine: its BareMetalHost, or else its hostname. It is empty if no host is known.
func HostOf(m *snapshot.Machine) string {
	switch {
	case m.Config != nil && m.Config.Status.HostName != "":
		return m.Config.Status.HostName
	case m.Host != nil:
		return m.Host.Name
	}
	return ""
}

// readFrom returns the objects of a Machine that were read.
func readFrom(m *snapshot.Machine) []Object {
	objects := []Object{{Kind: snapshot.KindMachine, Namespace: m.Namespace, Name: m.Name}}
	if m.Config != nil {
		objects = append(objects, Object{Kind: snapshot.KindConfig, Namespace: m.Config.Namespace, Name: m.Config.Name})
	}
	return objects
}

// config adds the causes that the config of a Machine reports.
func (j *judgment) config(m *snapshot.Machine) {
	object := Object{Kind: snapshot.KindConfig, Namespace: m.Config.Namespace, Name: m.Config.Name}
	conditions := m.Config.Status.Conditions
	j.paused(object, conditions)
	j.deleting(object, m.Config.DeletionTimestamp, conditions)
	if c := meta.FindStatusCondition(conditions, bootstrapv1.HostAvailableCondition); Unmet(c) {
		j.condition(object, c, c.LastTransitionTime)
	}
	if !m.DeletionTimestamp.IsZero() {
		return
	}
	c := Stage(m.Config)
	switch {
	case c == nil:
	case c.Reason == bootstrapv1.HostInstallingReason:
		j.classified(object, c, StageStart(m.Config, c), upTo(UsualStage(m.Config.Status.InstallationProgress)), true)
	default:
		j.condition(object, c, StageStart(m.Config, c))
	}
}

// Stage returns the condition of the step that the host of a config is in. It is nil if the host is installed, or
// nothing is reported yet.
func Stage(config *bootstrapv1.OpenshiftAssistedConfig) *metav1.Condition {
	if ready := meta.FindStatusCondition(config.Status.Conditions, bootstrapv1.ReadyCondition); ready != nil &&
		ready.Reason == bootstrapv1.InternalErrorReason {
		return ready
	}
	for _, kind := range bootstrapv1.HostStages() {
		if c := meta.FindStatusCondition(config.Status.Conditions, kind); Unmet(c) {
			return c
		}
	}
	return nil
}

// StageStart returns when the step of a host began.
func StageStart(config *bootstrapv1.OpenshiftAssistedConfig, stage *metav1.Condition) metav1.Time {
	if start := config.Status.InstallationStageStartTime; start != nil && stage.Reason == bootstrapv1.HostInstallingReason {
		return *start
	}
	return stepStart(config.CreationTimestamp, config.Status.Conditions, bootstrapv1.HostStages(), stage)
}

// node adds the causes that Cluster API and the control plane provider report of a Machine.
func (j *judgment) node(object Object, m *snapshot.Machine) {
	joined := m.Status.NodeRef.Name != ""
	for _, kind := range []string{
		clusterv1.MachineHealthCheckSucceededCondition, controlplanev1.EtcdMemberHealthyCondition, clusterv1.MachineNodeHealthyCondition,
	} {
		c := meta.FindStatusCondition(m.Status.Conditions, kind)
		if !Unmet(c) || !joined || kind == controlplanev1.EtcdMemberHealthyCondition && c.Status == metav1.ConditionUnknown {
			continue
		}
		j.condition(object, c, c.LastTransitionTime)
	}
	if !joined {
		j.add(Cause{
			State: Progressing, Object: object, Reason: "WaitingForNode", Message: "The Machine has no Node yet.",
			Since: &m.CreationTimestamp, follows: true,
		})
	}
}
