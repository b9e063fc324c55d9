package metal3

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The condition with the health of a host as its BMC reports it, and the reasons with which it is False. They are those
// of HealthyCondition in apis/metal3.io/v1alpha1 of the Bare Metal Operator 0.13. The BMC reports a warning for the loss
// of a redundant power supply, for example.
const (
	healthyCondition  = "Healthy"
	warningReason     = "Warning"
	criticalErrReason = "CriticalError"
)

// Unhealthy returns the conditions that report an unhealthy host; nil if there are none. An unknown health is no problem:
// many BMCs do not report it, and an older Bare Metal Operator has no such condition.
func Unhealthy(host *Host) []Condition {
	for _, c := range host.Status.Conditions {
		if c.Type == healthyCondition && c.Status == string(metav1.ConditionFalse) {
			return []Condition{c}
		}
	}
	return nil
}

// CriticalHealth reports whether the BMC of a host reports a critical error.
func CriticalHealth(host *Host) bool { return unhealthyBecause(host, criticalErrReason) }

// HealthWarning reports whether the BMC of a host reports a warning.
func HealthWarning(host *Host) bool { return unhealthyBecause(host, warningReason) }

func unhealthyBecause(host *Host, reason string) bool {
	found := Unhealthy(host)
	return len(found) > 0 && found[0].Reason == reason
}
