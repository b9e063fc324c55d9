package facts

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// Remediation is one as it is recorded in annotations: that in progress on the control plane, and that for which a
// Machine was made on the Machine.
type Remediation struct {
	// Machine was replaced, or is being.
	Machine string `json:"machine"`
	// Timestamp is when that was decided.
	Timestamp metav1.Time `json:"timestamp"`
	// RetryCount is how many were replaced before it because of the same failure.
	RetryCount int32 `json:"retryCount"`
}

// errIncomplete is why a record is none.
var errIncomplete = errors.New("machine, timestamp or retryCount is missing, or cannot be")

// RemediationIn reads what is recorded in an annotation of an object; nil: nothing is.
func RemediationIn(obj metav1.Object, annotation string) (*Remediation, error) {
	value, recorded := obj.GetAnnotations()[annotation]
	if !recorded {
		return nil, nil //nolint:nilnil // there is none
	}
	record := &Remediation{}
	err := json.Unmarshal([]byte(value), record)
	if err == nil && (record.Machine == "" || record.Timestamp.IsZero() || record.RetryCount < 0) {
		err = errIncomplete
	}
	if err != nil {
		return nil, fmt.Errorf("the annotation %s of %s cannot be read: %w", annotation, obj.GetName(), err)
	}
	return record, nil
}

// LastRemediation is the one in progress, else the last for which one of some Machines was made; nil: none is recorded.
func (f *Facts) LastRemediation(machines []*clusterv1.Machine) *Remediation {
	if last, err := RemediationIn(f.ControlPlane, controlplanev1.RemediationInProgressAnnotation); err == nil && last != nil {
		return last
	}
	var last *Remediation
	for _, m := range machines {
		record, err := RemediationIn(m, controlplanev1.RemediationForAnnotation)
		if err == nil && record != nil && (last == nil || last.Timestamp.Before(&record.Timestamp)) {
			last = record
		}
	}
	return last
}

// Unhealthy reports whether a MachineHealthCheck found a Machine to be unhealthy.
func Unhealthy(m *clusterv1.Machine) bool {
	return conditions.IsFalse(m, clusterv1.MachineHealthCheckSucceededCondition)
}

// ToBeRemediated reports whether it is for the control plane to remediate a Machine: the MachineHealthCheck asks for
// it, or had the host rebooted, which did not help.
func (f *Facts) ToBeRemediated(m *clusterv1.Machine) bool {
	asked := conditions.IsFalse(m, clusterv1.MachineOwnerRemediatedCondition) || f.RebootFailed.Has(m.UID)
	return Unhealthy(m) && asked && !annotations.HasPaused(m) && !annotations.HasSkipRemediation(m)
}
