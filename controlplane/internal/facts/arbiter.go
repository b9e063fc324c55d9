package facts

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// Arbiters returns the number of desired Machines that are arbiters: members of etcd that are no masters.
func (f *Facts) Arbiters() int32 {
	if f.ControlPlane.Spec.Arbiter == nil {
		return 0
	}
	return 1
}

// MachineTemplate returns the template of an arbiter, or of another Machine of a control plane.
func MachineTemplate(
	cp *controlplanev1.OpenshiftAssistedControlPlane, arbiter bool,
) controlplanev1.OpenshiftAssistedControlPlaneMachineTemplate {
	template := *cp.Spec.MachineTemplate.DeepCopy()
	if !arbiter || cp.Spec.Arbiter == nil {
		return template
	}
	own := cp.Spec.Arbiter.MachineTemplate.DeepCopy()
	override(&template.ObjectMeta, own.ObjectMeta)
	override(&template.Spec.InfrastructureRef, own.Spec.InfrastructureRef)
	override(&template.Spec.ReadinessGates, own.Spec.ReadinessGates)
	override(&template.Spec.Deletion, own.Spec.Deletion)
	override(&template.Spec.Taints, own.Spec.Taints)
	return template
}

// override replaces a value by another unless that is omitted.
func override[T any](into *T, value T) {
	var omitted T
	if !equality.Semantic.DeepEqual(value, omitted) {
		*into = value
	}
}

// ConfigSpec returns the spec of the OpenshiftAssistedConfig of an arbiter, or of another Machine of a
// control plane.
func ConfigSpec(cp *controlplanev1.OpenshiftAssistedControlPlane, arbiter bool) bootstrapv1.OpenshiftAssistedConfigSpec {
	if own := cp.Spec.Arbiter; arbiter && own != nil && own.OpenshiftAssistedConfigSpec != nil {
		return *own.OpenshiftAssistedConfigSpec.DeepCopy()
	}
	return *cp.Spec.OpenshiftAssistedConfigSpec.DeepCopy()
}

// InfraTemplatesOf returns the templates of the infra machines of a control plane.
func InfraTemplatesOf(cp *controlplanev1.OpenshiftAssistedControlPlane) []clusterv1.ContractVersionedObjectReference {
	refs := []clusterv1.ContractVersionedObjectReference{MachineTemplate(cp, false).Spec.InfrastructureRef}
	if of := MachineTemplate(cp, true).Spec.InfrastructureRef; !slices.Contains(refs, of) {
		refs = append(refs, of)
	}
	return refs
}
