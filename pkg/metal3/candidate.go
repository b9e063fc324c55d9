package metal3

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// What keeps CAPM3 from giving a host to a Metal3Machine (api/v1beta2/common_types.go and
// baremetal/metal3machine_manager.go of CAPM3 1.13).
const (
	// NodeReuseLabel names the control plane (cp-<name>) or MachineDeployment (md-<name>) whose next Machine is to get the host.
	NodeReuseLabel = "infrastructure.cluster.x-k8s.io/node-reuse"

	// FailureDomainLabel names the failure domain of a host.
	FailureDomainLabel = "infrastructure.cluster.x-k8s.io/failure-domain"

	unhealthyAnnotation       = "capm3.metal3.io/unhealthy"
	formerUnhealthyAnnotation = "capi.metal3.io/unhealthy"
)

// HoldingAnnotations are those with which a BareMetalHost is left alone, by the Bare Metal Operator or by CAPM3.
var HoldingAnnotations = []string{metal3api.PausedAnnotation, metal3api.DetachedAnnotation, unhealthyAnnotation, formerUnhealthyAnnotation}

// ReuseName is the value of [NodeReuseLabel] of the hosts that are kept for a Metal3Machine; empty: none is. CAPM3 has
// it from the owners of the Machine; the Metal3Machine has it in the labels that it was made with.
func ReuseName(machine *unstructured.Unstructured) string {
	told := machine.GetLabels()
	_, controlPlane := told[clusterv1.MachineControlPlaneLabel]
	switch {
	case controlPlane && told[clusterv1.MachineControlPlaneNameLabel] != "":
		return "cp-" + told[clusterv1.MachineControlPlaneNameLabel]
	case !controlPlane && told[clusterv1.MachineDeploymentNameLabel] != "":
		return "md-" + told[clusterv1.MachineDeploymentNameLabel]
	}
	return ""
}

// KeptFor reports whether a host is kept for the Metal3Machines of a [ReuseName].
func KeptFor(host *Host, reuse string) bool {
	return reuse != "" && host.Labels[NodeReuseLabel] == reuse
}

// Unavailable says, in words for people, why CAPM3 does not give a host to a Metal3Machine of a [ReuseName]; it is
// empty when it may. The rules are those of chooseHost in CAPM3's baremetal/metal3machine_manager.go.
func Unavailable(host *Host, reuse string) string {
	return cmp.Or(excluded(host, reuse), unready(host))
}

// IsExpected reports whether CAPM3 waits for a host: it is kept for the Metal3Machine, and not available yet. No other
// is given to it meanwhile.
func IsExpected(host *Host, reuse string) bool {
	return KeptFor(host, reuse) && excluded(host, reuse) == "" && unready(host) != ""
}

// beforeAvailable are the provisioning states from which a host becomes available without a change by the user.
var beforeAvailable = []metal3api.ProvisioningState{
	metal3api.StateNone, metal3api.StateRegistering, metal3api.StateMatchProfile, metal3api.StateInspecting, metal3api.StatePreparing, metal3api.StateReady, metal3api.StateAvailable,
}

// MayBeGiven reports whether CAPM3 may give a host to a Metal3Machine of a [ReuseName], now or once the Bare Metal
// Operator has made it available, for which an error may pass.
func MayBeGiven(host *Host, reuse string) bool {
	healthy := *host
	healthy.Status.ErrorMessage = ""
	return excluded(&healthy, reuse) == "" && (KeptFor(host, reuse) || slices.Contains(beforeAvailable, metal3api.ProvisioningState(host.Status.Provisioning.State)))
}

// excluded says why a host is left out, whatever the Bare Metal Operator does with it.
func excluded(host *Host, reuse string) string {
	keeps, kept := host.Labels[NodeReuseLabel]
	switch {
	case host.Spec.ConsumerRef != nil:
		return "in use"
	case !host.DeletionTimestamp.IsZero():
		return "being deleted"
	case host.Status.ErrorMessage != "":
		return Failure(host)
	case annotation(host, metal3api.PausedAnnotation, unhealthyAnnotation, formerUnhealthyAnnotation) != "":
		return "annotated with " + annotation(host, metal3api.PausedAnnotation, unhealthyAnnotation, formerUnhealthyAnnotation)
	case kept && !KeptFor(host, reuse):
		return "kept for the next Machine of " + cmp.Or(keeps, "nobody") + " by the label " + NodeReuseLabel
	}
	return ""
}

// unready says what the Bare Metal Operator does with a host that is not available; empty: it is.
func unready(host *Host) string {
	switch state := metal3api.ProvisioningState(host.Status.Provisioning.State); state {
	case metal3api.StateReady, metal3api.StateAvailable:
		return ""
	case metal3api.StateNone:
		return "not looked at by the Bare Metal Operator yet"
	default:
		return string(state)
	}
}

// Failure is what the Bare Metal Operator says that is wrong with a host; empty when nothing is.
func Failure(host *Host) string {
	if host.Status.ErrorMessage == "" {
		return ""
	}
	kind := host.Status.ErrorType
	if kind == "" {
		kind = "error"
	}
	return kind + ": " + strings.TrimSpace(host.Status.ErrorMessage)
}

// Unmanaged is the annotation by which the Bare Metal Operator does nothing with a host; empty when it has none.
func Unmanaged(host *Host) string {
	return annotation(host, metal3api.PausedAnnotation, metal3api.DetachedAnnotation)
}

func annotation(host *Host, keys ...string) string {
	for _, key := range keys {
		if _, ok := host.Annotations[key]; ok {
			return key
		}
	}
	return ""
}

// LargestDisk is the size in bytes of the largest of what the inspection found; 0 when it found none.
func LargestDisk(disks []Disk) int64 {
	var largest int64
	for _, disk := range disks {
		largest = max(largest, disk.SizeBytes)
	}
	return largest
}

// hostSelector is spec.hostSelector of a Metal3Machine.
type hostSelector struct {
	MatchLabels      map[string]string `json:"matchLabels,omitempty"`
	MatchExpressions []struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	} `json:"matchExpressions,omitempty"`
}

// HostSelector is which hosts a Metal3Machine may be given, by their labels. CAPM3 takes the operators of
// k8s.io/apimachinery/pkg/selection, in any case.
func HostSelector(machine *unstructured.Unstructured) (labels.Selector, error) {
	raw, _, err := unstructured.NestedMap(machine.Object, "spec", "hostSelector")
	if err != nil {
		return nil, fmt.Errorf("spec.hostSelector: %w", err)
	}
	var wanted hostSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &wanted); err != nil {
		return nil, fmt.Errorf("spec.hostSelector: %w", err)
	}
	selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: wanted.MatchLabels})
	if err != nil {
		return nil, fmt.Errorf("spec.hostSelector: %w", err)
	}
	for _, expression := range wanted.MatchExpressions {
		requirement, err := labels.NewRequirement(expression.Key, selection.Operator(strings.ToLower(expression.Operator)), expression.Values)
		if err != nil {
			return nil, fmt.Errorf("spec.hostSelector: %w", err)
		}
		selector = selector.Add(*requirement)
	}
	return selector, nil
}
