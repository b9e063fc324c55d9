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

// Labels and annotations with which CAPM3 chooses a host for a Metal3Machine (api/v1beta2/common_types.go and
// baremetal/metal3machine_manager.go of CAPM3 1.13).
const (
	// NodeReuseLabel names the control plane (cp-<name>) or MachineDeployment (md-<name>) whose next Machine
	// gets the host.
	NodeReuseLabel = "infrastructure.cluster.x-k8s.io/node-reuse"

	// FailureDomainLabel names the failure domain of a host.
	FailureDomainLabel = "infrastructure.cluster.x-k8s.io/failure-domain"

	unhealthyAnnotation       = "capm3.metal3.io/unhealthy"
	formerUnhealthyAnnotation = "capi.metal3.io/unhealthy"
)

// BlockingAnnotations are the annotations with which the Bare Metal Operator or CAPM3 leaves a BareMetalHost
// alone.
var BlockingAnnotations = []string{metal3api.PausedAnnotation, metal3api.DetachedAnnotation, unhealthyAnnotation, formerUnhealthyAnnotation}

// NodeReuseName returns the value of [NodeReuseLabel] of the hosts that are reserved for a Metal3Machine; ""
// if none is. CAPM3 derives it from the owners of the Machine. The Metal3Machine has the owners in the labels
// that it was created with.
func NodeReuseName(machine *unstructured.Unstructured) string {
	machineLabels := machine.GetLabels()
	_, controlPlane := machineLabels[clusterv1.MachineControlPlaneLabel]
	switch {
	case controlPlane && machineLabels[clusterv1.MachineControlPlaneNameLabel] != "":
		return "cp-" + machineLabels[clusterv1.MachineControlPlaneNameLabel]
	case !controlPlane && machineLabels[clusterv1.MachineDeploymentNameLabel] != "":
		return "md-" + machineLabels[clusterv1.MachineDeploymentNameLabel]
	}
	return ""
}

// IsReservedFor reports whether a host is reserved for the Metal3Machines of a [NodeReuseName].
func IsReservedFor(host *Host, reuse string) bool {
	return reuse != "" && host.Labels[NodeReuseLabel] == reuse
}

// UnavailableReason returns why CAPM3 does not give a host to a Metal3Machine of a [NodeReuseName], for
// messages. It is empty if CAPM3 may. The rules are those of chooseHost in CAPM3's
// baremetal/metal3machine_manager.go.
func UnavailableReason(host *Host, reuse string) string {
	return cmp.Or(exclusion(host, reuse), notReadyReason(host))
}

// IsExpected reports whether CAPM3 waits for a host: it is reserved for the Metal3Machine, and not available
// yet. CAPM3 gives it no other host meanwhile.
func IsExpected(host *Host, reuse string) bool {
	return IsReservedFor(host, reuse) && exclusion(host, reuse) == "" && notReadyReason(host) != ""
}

// NeverChosen reports whether CAPM3 chooses a host for no Machine as long as the user does not change the host.
func NeverChosen(host *Host) bool {
	return !host.DeletionTimestamp.IsZero() || host.Spec.ExternallyProvisioned ||
		annotation(host, unhealthyAnnotation, formerUnhealthyAnnotation) != ""
}

// beforeAvailable are the provisioning states from which a host becomes available without a change by the
// user.
var beforeAvailable = []metal3api.ProvisioningState{
	metal3api.StateNone,
	metal3api.StateRegistering,
	metal3api.StateMatchProfile,
	metal3api.StateInspecting,
	metal3api.StatePreparing,
	metal3api.StateReady,
	metal3api.StateAvailable,
}

// MayBeChosen reports whether CAPM3 may give a host to a Metal3Machine of a [NodeReuseName], now or once it
// is available. An error of the host may pass, and is ignored.
func MayBeChosen(host *Host, reuse string) bool {
	healthy := *host
	healthy.Status.ErrorMessage = ""
	return exclusion(&healthy, reuse) == "" &&
		(IsReservedFor(host, reuse) || slices.Contains(beforeAvailable, metal3api.ProvisioningState(host.Status.Provisioning.State)))
}

// exclusion returns why CAPM3 excludes a host in any provisioning state; "" if it does not.
func exclusion(host *Host, reuse string) string {
	reservedFor, reserved := host.Labels[NodeReuseLabel]
	switch {
	case host.Spec.ConsumerRef != nil:
		return "in use"
	case !host.DeletionTimestamp.IsZero():
		return "being deleted"
	case host.Status.ErrorMessage != "":
		return ErrorOf(host)
	case annotation(host, metal3api.PausedAnnotation, unhealthyAnnotation, formerUnhealthyAnnotation) != "":
		return "annotated with " + annotation(host, metal3api.PausedAnnotation, unhealthyAnnotation, formerUnhealthyAnnotation)
	case reserved && !IsReservedFor(host, reuse):
		return "reserved for the next Machine of " + cmp.Or(reservedFor, "an unnamed owner") + " by the label " + NodeReuseLabel
	}
	return ""
}

// notReadyReason returns what the Bare Metal Operator does with a host that is not available; "" if the host
// is available.
func notReadyReason(host *Host) string {
	switch state := metal3api.ProvisioningState(host.Status.Provisioning.State); state {
	case metal3api.StateReady, metal3api.StateAvailable:
		return ""
	case metal3api.StateNone:
		return "not registered by the Bare Metal Operator yet"
	default:
		return string(state)
	}
}

// ErrorOf returns the error of a host as the Bare Metal Operator reports it; "" if there is none.
func ErrorOf(host *Host) string {
	if host.Status.ErrorMessage == "" {
		return ""
	}
	kind := host.Status.ErrorType
	if kind == "" {
		kind = "error"
	}
	return kind + ": " + strings.TrimSpace(host.Status.ErrorMessage)
}

// UnmanagedAnnotation returns the annotation with which the Bare Metal Operator leaves a host alone; "" if
// the host has none.
func UnmanagedAnnotation(host *Host) string {
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

// LargestDisk returns the size of the largest inspected disk in bytes; 0 if there is none.
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

// TemplateKind is the kind of the templates of Metal3Machines.
const TemplateKind = MachineKind + clusterv1.TemplateSuffix

// HostSelectorOfTemplate returns the label selector of the hosts that the Metal3Machines of a template may get.
func HostSelectorOfTemplate(template *unstructured.Unstructured) (labels.Selector, error) {
	machine, _, err := unstructured.NestedMap(template.Object, "spec", "template")
	if err != nil {
		return nil, fmt.Errorf("spec.template: %w", err)
	}
	selector, err := HostSelector(&unstructured.Unstructured{Object: machine})
	if err != nil {
		return nil, fmt.Errorf("spec.template.%w", err)
	}
	return selector, nil
}

// HostSelector returns the label selector of the hosts that a Metal3Machine may get. CAPM3 accepts the
// operators of k8s.io/apimachinery/pkg/selection in upper and lower case.
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
