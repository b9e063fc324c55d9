package judge

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// Goals of a cluster.
const (
	// Installed means that the cluster is installed and serves.
	Installed = "installed"
	// Upgraded means that the control plane completed the release of its spec.
	Upgraded = "upgraded"
	// Deleted means that the Cluster does not exist.
	Deleted = "deleted"
)

// IsGoal reports whether a word is a goal.
func IsGoal(word string) bool { return slices.Contains([]string{Installed, Upgraded, Deleted}, word) }

// Progress is how far a cluster is from a goal.
type Progress int

// Degrees of progress.
const (
	// Pending means that the goal may still be reached. It may need an action of the user.
	Pending Progress = iota
	// Reached means that the goal is reached.
	Reached
	// NeverReached means that the goal cannot be reached without another request of the user.
	NeverReached
)

// refusals are the reasons for which a requested release is not installed until the user changes the request.
var refusals = []string{
	controlplanev1.UpgradeNotOfferedReason, controlplanev1.UpgradeRiskNotAcceptedReason, controlplanev1.UpgradeRefusedReason,
	controlplanev1.UnsupportedVersionReason, controlplanev1.VersionChangeNotSupportedReason, controlplanev1.VersionMismatchReason,
}

// Toward returns how far a Cluster that exists is from a goal, and what the goal waits for.
func Toward(goal string, c *snapshot.Cluster) (Progress, *Cause) {
	cause := Cluster(c)
	if goal == Deleted {
		if c.DeletionTimestamp == nil {
			object := Object{Kind: snapshot.KindCluster, Namespace: c.Namespace, Name: c.Name}
			return Pending, &Cause{State: Blocked, Object: object, Message: "The Cluster is not being deleted.", ReadFrom: []Object{object}}
		}
		return Pending, &cause
	}
	if c.DeletionTimestamp != nil {
		return NeverReached, &cause
	}
	if c.ControlPlane == nil || !isCurrent(c) {
		return Pending, &cause
	}
	if goal == Installed {
		return towardInstalled(c, &cause)
	}
	return towardUpgraded(c, &cause)
}

// isCurrent reports whether the status of a control plane belongs to the spec that the user has set. In a Cluster with a
// topology, Cluster API first has to copy the spec of the Cluster to the control plane.
func isCurrent(c *snapshot.Cluster) bool {
	if c.ControlPlane.Status.ObservedGeneration != c.ControlPlane.Generation {
		return false
	}
	copied := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
	return !c.Spec.Topology.IsDefined() || copied != nil && copied.ObservedGeneration == c.Generation &&
		(copied.Status == metav1.ConditionTrue || !topologyFailures[copied.Reason])
}

func towardInstalled(c *snapshot.Cluster, cause *Cause) (Progress, *Cause) {
	status := &c.ControlPlane.Status
	switch {
	case meta.IsStatusConditionTrue(status.Conditions, controlplanev1.InstalledCondition) &&
		meta.IsStatusConditionTrue(status.Conditions, controlplanev1.AvailableCondition):
		return Reached, cause
	case status.Installation.Phase == controlplanev1.InstallationFailed && cause.Reason == controlplanev1.InstallationFailedReason:
		return NeverReached, cause
	}
	return Pending, cause
}

func towardUpgraded(c *snapshot.Cluster, cause *Cause) (Progress, *Cause) {
	cp := c.ControlPlane
	upToDate := meta.FindStatusCondition(cp.Status.Conditions, controlplanev1.MachinesUpToDateCondition)
	switch {
	case cp.Status.DistributionVersion == cp.Spec.DistributionVersion && cp.Status.Upgrade.DistributionVersion == "" &&
		meta.IsStatusConditionFalse(cp.Status.Conditions, controlplanev1.RollingOutCondition):
		return Reached, cause
	case Unmet(upToDate) && slices.Contains(refusals, upToDate.Reason):
		return NeverReached, ofControlPlane(c, upToDate)
	}
	return Pending, cause
}

// FailingUpgrade returns the failure that the cluster reports during an upgrade. It is nil if the cluster reports none. The
// cluster retries, so that a failure may end without an action.
func FailingUpgrade(c *snapshot.Cluster) *Cause {
	if c.ControlPlane == nil {
		return nil
	}
	rollingOut := meta.FindStatusCondition(c.ControlPlane.Status.Conditions, controlplanev1.RollingOutCondition)
	if rollingOut == nil || rollingOut.Reason != controlplanev1.UpgradeFailingReason {
		return nil
	}
	return ofControlPlane(c, rollingOut)
}

// ofControlPlane returns the cause that a condition of the control plane reports.
func ofControlPlane(c *snapshot.Cluster, condition *metav1.Condition) *Cause {
	j := judgment{now: c.Time}
	object := Object{Kind: snapshot.KindControlPlane, Namespace: c.ControlPlane.Namespace, Name: c.ControlPlane.Name}
	j.condition(object, condition, condition.LastTransitionTime)
	return &j.causes[0]
}
