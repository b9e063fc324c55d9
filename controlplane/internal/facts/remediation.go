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

// Remediation is the record of a remediation in an annotation. The control plane has the record of the
// remediation in progress, a Machine the record of the remediation that created the Machine.
type Remediation struct {
	// Machine is the Machine that was replaced, or is being replaced.
	Machine string `json:"machine"`
	// Timestamp is when the remediation was decided.
	Timestamp metav1.Time `json:"timestamp"`
	// RetryCount is the number of earlier replacements because of the same failure.
	RetryCount int32 `json:"retryCount"`
}

// errIncomplete is the error for an incomplete record.
var errIncomplete = errors.New("machine, timestamp or retryCount is missing, or cannot be")

// RemediationIn reads the record in an annotation of an object; nil if there is none.
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

// LastRemediation returns the remediation in progress, or else the last one that created one of some
// Machines; nil if none is recorded.
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

// ToBeRemediated reports whether the control plane should remediate a Machine: the MachineHealthCheck
// requests it, or all reboots of the host failed.
func (f *Facts) ToBeRemediated(m *clusterv1.Machine) bool {
	requested := conditions.IsFalse(m, clusterv1.MachineOwnerRemediatedCondition) || f.RebootFailed.Has(m.UID)
	return Unhealthy(m) && requested && !annotations.HasPaused(m) && !annotations.HasSkipRemediation(m)
}
