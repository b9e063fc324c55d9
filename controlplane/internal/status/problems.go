package status

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/findings"
)

// importance lists the conditions in the order in which their problems matter. A condition that is missing here comes last.
var importance = []string{
	controlplanev1.DeletingCondition, controlplanev1.InstalledCondition, controlplanev1.RegistrationHealthyCondition,
	controlplanev1.ReleaseImageResolvedCondition,
	controlplanev1.MachinesCreatedCondition, controlplanev1.AvailableCondition, controlplanev1.ControlPlaneComponentsHealthyCondition,
	controlplanev1.EtcdClusterHealthyCondition, controlplanev1.KubeconfigAvailableCondition, controlplanev1.MachinesUpToDateCondition,
	controlplanev1.TopologyUpgradeableCondition, controlplanev1.CertificatesApprovedCondition, controlplanev1.RollingOutCondition,
	controlplanev1.ScalingUpCondition, controlplanev1.HostsReleasingCondition, controlplanev1.ScalingDownCondition,
	controlplanev1.RemediatingCondition,
}

// Problems returns the conditions that report a problem, the most important one first. Of several conditions with the
// same reason it returns the first. While the control plane is being deleted, only the deletion matters.
func Problems(all []metav1.Condition, deleting bool) []metav1.Condition {
	sorted := slices.SortedStableFunc(slices.Values(all), func(a, b metav1.Condition) int { return cmp.Compare(rank(a.Type), rank(b.Type)) })
	return findings.FirstOfReasons(sorted, func(c *metav1.Condition) bool {
		return IsProblem(c) && (!deleting || c.Type == controlplanev1.DeletingCondition)
	})
}

func rank(conditionType string) int {
	if i := slices.Index(importance, conditionType); i >= 0 {
		return i
	}
	return len(importance)
}

// settlingTime is how long a new control plane reports no problem: other objects of its manifest are created after it.
const settlingTime = 10 * time.Second

// settling returns how much longer a control plane is new.
func settling(cp *controlplanev1.OpenshiftAssistedControlPlane, now time.Time) time.Duration {
	if cp.CreationTimestamp.IsZero() {
		return 0
	}
	return max(0, settlingTime-now.Sub(cp.CreationTimestamp.Time))
}

// IsProblem reports whether a condition reports a problem: a state that does not end automatically, or an installed cluster
// that does not serve. The preflight only advises, and ignored validations are the user's decision. An import ends
// automatically: a blocker that the user has to remove has another reason.
func IsProblem(c *metav1.Condition) bool {
	switch c.Reason {
	case controlplanev1.ValidationsIgnoredReason, controlplanev1.WaitingForImportReason:
		return false
	case controlplanev1.ValidationFailedReason:
		return true
	case controlplanev1.NotAvailableReason, controlplanev1.ConnectionDownReason, controlplanev1.HealthUnknownReason:
		return c.Type == controlplanev1.AvailableCondition
	}
	return Urgent(c.Reason) && c.Type != controlplanev1.PreflightPassedCondition
}

// problemReason returns the reason of the most important problem; empty without a problem.
func problemReason(all []metav1.Condition, deleting bool) string {
	if problems := Problems(all, deleting); len(problems) > 0 {
		return problems[0].Reason
	}
	return ""
}
