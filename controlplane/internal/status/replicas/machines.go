// Package replicas computes the conditions of a control plane about its Machines: their creation, their versions, scaling,
// remediation and the release of their hosts. It has no client.
package replicas

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scaling"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/rollout"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/findings"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// View contains the input of the conditions about Machines.
type View struct {
	*facts.Facts
	Found *tasks.Findings
	// Removal returns the situation of the Machines that are being deleted.
	Removal func() (*removal.Situation, error)
	// Failure ended the reconcile early.
	Failure error
}

// Created returns the condition MachinesCreated.
func (v *View) Created() metav1.Condition {
	const t = controlplanev1.MachinesCreatedCondition
	missing := v.missing()
	switch {
	case v.Deleting():
		return condition.False(t, clusterv1.DeletingReason, "the control plane is being deleted")
	case missing <= 0:
		c := condition.True(t, controlplanev1.MachinesCreatedReason)
		if refused := v.Found.Blocked(tasks.TemplateOwner); refused != nil {
			c.Message = refused.Message
		}
		return c
	case v.Found.Blocked(tasks.MachineCreation) != nil:
		return condition.Blocked(t, v.Found.Blocked(tasks.MachineCreation))
	case v.Found.Blocked(tasks.Installation) != nil:
		return condition.Blocked(t, v.Found.Blocked(tasks.Installation))
	case v.Found.Blocked(tasks.ScaleUp) != nil:
		return condition.Blocked(t, v.Found.Blocked(tasks.ScaleUp))
	case v.Failure != nil:
		return condition.False(t, clusterv1.InternalErrorReason, "an earlier step failed. The provider retries: see the log of the manager")
	default:
		return condition.False(
			t, clusterv1.ScalingUpReason, fmt.Sprintf("creating %d of %s", missing, english.Plural(int(v.Replicas()), "Machine", "")),
		)
	}
}

// missing returns the number of Machines to be created.
func (v *View) missing() int {
	return scaling.Missing(int(v.Replicas()), len(v.Found.Machines), v.Found.Stuck)
}

// Stuck reports a Machine whose host left etcd, but whose infrastructure is not deleted, and the user action.
func Stuck(m *clusterv1.Machine) string {
	infra := m.Spec.InfrastructureRef.Kind + " " + m.Spec.InfrastructureRef.Name
	stuck := fmt.Sprintf("Machine %s is stuck: its host left etcd, but %s is not deleted. ", m.Name, infra)
	if m.Spec.InfrastructureRef.Kind != metal3.MachineKind {
		return stuck + "See the conditions of " + infra
	}
	return stuck + "If the BMC does not answer, unplug the server so that it never boots and joins etcd again. Then annotate its " +
		"BareMetalHost with bootstrap.cluster.x-k8s.io/allow-deletion=true and delete it, " +
		"which wipes the server if its BMC answers after all"
}

// Ready names the Machines that are not Ready. Their blockers are reported after the installation:
// before, all have the same blocker, which the condition Installed reports.
func (v *View) Ready() metav1.Condition {
	const t = controlplanev1.MachinesReadyCondition
	waiting := v.machinesThat(func(m *clusterv1.Machine) bool { return !conditions.IsTrue(m, clusterv1.MachineReadyCondition) })
	if v.Installed() || len(waiting) == 0 {
		return v.aggregate(clusterv1.MachineReadyCondition, t)
	}
	return condition.False(t, clusterv1.NotReadyReason, fmt.Sprintf("%s not ready while the cluster is installed, see %s: %s",
		english.Plural(len(waiting), "Machine is", "Machines are"),
		english.PluralWord(len(waiting), "its conditions", "their conditions"),
		Names(waiting)))
}

// UpToDate aggregates the condition of the Machines, unless the Machines could not be updated.
func (v *View) UpToDate() metav1.Condition {
	const t = controlplanev1.MachinesUpToDateCondition
	if v.Found.Blocked(tasks.MachineSync) != nil {
		return condition.Blocked(t, v.Found.Blocked(tasks.MachineSync))
	}
	if message := v.arbiterMismatch(); message != "" {
		return condition.False(t, controlplanev1.ArbiterMismatchReason, message)
	}
	if v.Found.Blocked(tasks.Upgrade) != nil {
		return condition.Blocked(t, v.Found.Blocked(tasks.Upgrade))
	}
	if message := v.versionMismatch(); message != "" {
		return condition.False(t, controlplanev1.VersionMismatchReason, message)
	}
	if message := v.kubernetesMismatch(); message != "" {
		return condition.False(t, controlplanev1.KubernetesVersionMismatchReason, message)
	}
	upgrade := rollout.Progress(v.Facts)
	if recorded := v.lastKnown(t, upgrade); recorded != nil {
		return *recorded
	}
	c := v.aggregate(clusterv1.MachineUpToDateCondition, t)
	if upgrade == "" && versioning.AwaitsRelease(v.Facts) {
		upgrade = fmt.Sprintf("release %s is not requested from the cluster yet", v.ControlPlane.Spec.DistributionVersion)
	}
	if upgrade != "" && c.Status == metav1.ConditionTrue {
		if waiting := rollout.WaitingPools(v.Facts); waiting != "" {
			upgrade += "; " + waiting
		}
		return condition.False(t, controlplanev1.UpgradeInProgressReason, upgrade) // the upgrade ends when the cluster reports its end
	}
	return c
}

// arbiterMismatch reports too many arbiters, or too few although no Machine is missing; empty if the number
// is right.
func (v *View) arbiterMismatch() string {
	arbiters, wanted := v.machinesThat(func(m *clusterv1.Machine) bool { return desired.IsArbiter(v.Facts, m) }), int(v.Arbiters())
	lost := v.machinesThat(func(m *clusterv1.Machine) bool { return desired.LostArbiterRole(v.Facts, m) })
	switch {
	case len(arbiters) > wanted:
		return fmt.Sprintf(
			"the number of arbiters is %d, and spec.arbiter requests %d: delete one of these Machines, which wipes its host, and a master "+
				"takes its place: %s",
			len(arbiters),
			wanted,
			Names(arbiters),
		)
	case len(arbiters) < wanted && len(lost) > 0:
		return fmt.Sprintf("spec.arbiter is set, and the OpenshiftAssistedConfig of Machine %s has the label of arbiters, but not "+
			"spec.role: an older bootstrap provider drops spec.role, for example on the hub to which the cluster is moved. The host keeps "+
			"its role. If it is the arbiter, wait until both providers have the same version, then delete its Machine, which wipes the "+
			"host: an arbiter takes its place. If not, remove the label %s",
			Names(lost), bootstrapv1.ArbiterLabel)
	case len(arbiters) < wanted && len(v.Found.Machines) >= int(v.Replicas()):
		return fmt.Sprintf(
			"spec.arbiter is set, but no Machine belongs to an arbiter: delete one of these Machines, which wipes its host, and an "+
				"arbiter takes its place: %s",
			Names(v.Found.Machines),
		)
	}
	return ""
}

// versionMismatch reports a cluster that runs, or is being upgraded to, a newer release than the spec
// requests; empty otherwise.
func (v *View) versionMismatch() string {
	target, known := versioning.Target(v.Facts)
	wanted, given := versioning.WantedVersion(v.Facts)
	if !known || !given || wanted.GTE(target) {
		return ""
	}
	return fmt.Sprintf(
		"spec.distributionVersion is v%s, but the cluster was, or is being, upgraded to v%s. It is never downgraded: set %s to v%s%s",
		wanted, target, v.Settings().Release, target, v.versionToSet())
}

// versionToSet returns the end of a message about an upgrade by another client. It names the Kubernetes version to set, if
// the spec has another one.
func (v *View) versionToSet() string {
	runs := v.Workload.Kubernetes()
	switch {
	case versioning.WantedKubernetes(v.Facts) == "" || versions.SameKubernetes(versioning.WantedKubernetes(v.Facts), runs):
		return ""
	case v.Workload.Upgrading != "" || runs == "":
		return ", and " + v.Settings().Version + " to its Kubernetes version"
	}
	return ", and " + v.Settings().Version + " to " + runs
}

// kubernetesMismatch reports a Kubernetes version in the spec that is not that of the running release. It is empty while
// another release is requested or rolled out.
func (v *View) kubernetesMismatch() string {
	wanted, runs := versioning.WantedKubernetes(v.Facts), v.Workload.Kubernetes()
	upgrades := v.Workload.Upgrading != "" || versioning.AwaitsRelease(v.Facts)
	if !v.Installed() || upgrades || wanted == "" || runs == "" || versions.SameKubernetes(wanted, runs) {
		return ""
	}
	mismatch := fmt.Sprintf("spec.version is %s, but release %s, which runs, has Kubernetes %s. ", wanted, v.Workload.OpenShiftVersion, runs)
	if versions.AtLeast(wanted, runs) {
		return mismatch + fmt.Sprintf("Set %s to a release with Kubernetes %s. Until then nothing is upgraded. If no "+
			"release has that version, see docs/operations/upgrading.md", v.Settings().Release, wanted)
	}
	return mismatch + fmt.Sprintf("Set %s to %s. If Cluster API refuses the version of the topology, see "+
		"docs/operations/upgrading.md", v.Settings().Version, runs)
}

// aggregate aggregates a condition of the Machines.
func (v *View) aggregate(source, target string) metav1.Condition {
	if len(v.Found.Machines) == 0 {
		return condition.True(target, clusterv1.NoReplicasReason)
	}
	c, err := conditions.NewAggregateCondition(v.Found.Machines, source, conditions.TargetConditionType(target))
	if err != nil {
		return condition.Unknown(target, clusterv1.InternalErrorReason, "cannot sum up the conditions of the Machines")
	}
	return *c
}

// lastKnown returns the recorded condition if it is False, and a release waits while the cluster cannot be read. Nothing then
// shows whether the blocker of the upgrade has ended.
func (v *View) lastKnown(conditionType, upgrade string) *metav1.Condition {
	if v.Workload.Known() || upgrade != "" || !versioning.AwaitsRelease(v.Facts) || !conditions.IsFalse(v.ControlPlane, conditionType) {
		return nil
	}
	return conditions.Get(v.ControlPlane, conditionType)
}

// RollingOut returns the condition RollingOut: an upgrade, or Machines that are not up to date. While no release is
// requested from the cluster, nothing is rolled out.
func (v *View) RollingOut() metav1.Condition {
	const t = controlplanev1.RollingOutCondition
	outdated := v.machinesThat(func(m *clusterv1.Machine) bool { return conditions.IsFalse(m, clusterv1.MachineUpToDateCondition) })
	upgrade := rollout.Progress(v.Facts)
	blocked := v.Found.Blocked(tasks.Upgrade)
	last := v.lastKnown(t, upgrade)
	requested := upgrade != "" || v.Workload.Rollout != nil && v.Workload.Rollout.Pending
	switch awaits := versioning.AwaitsRelease(v.Facts); {
	case len(outdated) == 0 && upgrade == "" && !awaits:
		return rollout.Finished(v.Facts)
	case last != nil:
		return *last
	case !requested && (awaits || blocked != nil):
		return rollout.NotBegun(v.Facts, v.elsewhere(blocked))
	}
	c := condition.True(t, cmp.Or(rollout.PoolReason(v.Facts), clusterv1.RollingOutReason))
	parts := []string{upgrade}
	if r := v.Workload.Rollout; upgrade != "" && r != nil && r.Failing != "" {
		c.Reason = controlplanev1.UpgradeFailingReason
		parts = append(parts, "failing: "+r.Failing)
	}
	if blocked != nil {
		parts = append(parts, v.elsewhere(blocked))
	}
	parts = append(parts, rollout.WaitingPools(v.Facts))
	if len(outdated) > 0 {
		parts = append(parts, fmt.Sprintf("%s not up to date: %s", english.Plural(len(outdated), "Machine is", "Machines are"), Names(outdated)))
	}
	c.Message = strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
	return c
}

// elsewhere refers to the condition MachinesUpToDate for a blocker of the upgrade, or repeats the blocker if that condition
// reports another problem.
func (v *View) elsewhere(blocked *findings.Outcome) string {
	if blocked != nil && v.UpToDate().Reason != blocked.Reason {
		return blocked.Message
	}
	return "see the condition " + controlplanev1.MachinesUpToDateCondition
}

// ScalingUp returns the condition ScalingUp.
func (v *View) ScalingUp() metav1.Condition {
	const t = controlplanev1.ScalingUpCondition
	if v.Deleting() || v.missing() == 0 {
		return condition.False(t, clusterv1.NotScalingUpReason, "")
	}
	c := condition.True(t, clusterv1.ScalingUpReason)
	c.Message = fmt.Sprintf("scaling up from %d to %s", len(v.Found.Machines)-v.Found.Stuck, english.Plural(int(v.Replicas()), "Machine", ""))
	if blocked := v.Found.Blocked(tasks.Installation); blocked != nil {
		c.Message += ": " + blocked.Message
	} else if blocked := v.Found.Blocked(tasks.ScaleUp); blocked != nil {
		c.Reason = blocked.Reason
		c.Message += ": " + blocked.Message
	}
	return c
}

// ScalingDown reports the deletion of surplus Machines. Their hosts are in the condition HostsReleasing, like
// those of replaced Machines.
func (v *View) ScalingDown() metav1.Condition {
	const t = controlplanev1.ScalingDownCondition
	wanted := int(v.Replicas())
	if v.Deleting() {
		wanted = 0
	}
	if len(v.Found.Machines) <= wanted {
		return condition.False(t, clusterv1.NotScalingDownReason, "")
	}
	c := condition.True(t, clusterv1.ScalingDownReason)
	c.Message = fmt.Sprintf("scaling down from %d to %s", len(v.Found.Machines), english.Plural(wanted, "Machine", ""))
	if blocked := v.Found.Blocked(tasks.ScaleDown); blocked != nil {
		c.Reason = blocked.Reason
		c.Message += ": " + blocked.Message
	} else if v.releases().Status == metav1.ConditionTrue {
		c.Message += ": see the condition HostsReleasing"
	}
	return c
}

// Remediating aggregates the conditions of the Machines that are to be remediated. Other unhealthy Machines
// are only named.
func (v *View) Remediating() metav1.Condition {
	const t = controlplanev1.RemediatingCondition
	wanted := v.machinesThat(v.ToBeRemediated)
	if len(wanted) == 0 {
		c := condition.False(t, clusterv1.NotRemediatingReason, "")
		if unhealthy := v.machinesThat(facts.Unhealthy); len(unhealthy) > 0 {
			c.Message = "unhealthy, but not replaced by this provider: " + Names(unhealthy)
		}
		return c
	}
	summary, err := conditions.NewAggregateCondition(wanted, clusterv1.MachineOwnerRemediatedCondition, conditions.TargetConditionType(t))
	if err != nil {
		return condition.Unknown(t, clusterv1.InternalErrorReason, "cannot sum up the conditions of the Machines")
	}
	c := condition.True(t, clusterv1.RemediatingReason)
	if slices.ContainsFunc(wanted, func(m *clusterv1.Machine) bool {
		return conditions.GetReason(m, clusterv1.MachineOwnerRemediatedCondition) == controlplanev1.MachineCannotBeRemediatedReason
	}) {
		c.Reason = controlplanev1.MachineCannotBeRemediatedReason
	}
	c.Message = summary.Message
	return c
}

// Count returns the number of Machines whose condition is True.
func (v *View) Count(condition string) *int32 {
	with := v.machinesThat(func(m *clusterv1.Machine) bool { return conditions.IsTrue(m, condition) })
	return ptr.To(int32(len(with))) //nolint:gosec // a handful
}

// machinesThat returns the Machines for which a predicate is true.
func (v *View) machinesThat(matches func(*clusterv1.Machine) bool) []*clusterv1.Machine {
	var found []*clusterv1.Machine
	for _, m := range v.Found.Machines {
		if matches(m) {
			found = append(found, m)
		}
	}
	return found
}

// Names returns the names of the first Machines, and the number of the others.
func Names(machines []*clusterv1.Machine) string {
	names := make([]string, 0, len(machines))
	for _, m := range machines {
		names = append(names, m.Name)
	}
	return bound.List(names)
}
