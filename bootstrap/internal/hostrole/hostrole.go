// Package hostrole concludes the role of a host in its cluster from the facts of a reconcile. It has no client.
package hostrole

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// Of returns the role of the host in the cluster.
func Of(f *facts.Facts) aiv1beta1.HostRole {
	if _, controlPlane := f.Machine.Labels[clusterv1.MachineControlPlaneLabel]; !controlPlane {
		return aiv1beta1.HostRoleWorker
	}
	if isArbiter(f) {
		return aiv1beta1.HostRoleArbiter
	}
	return aiv1beta1.HostRoleMaster
}

func isArbiter(f *facts.Facts) bool { return f.Config.Spec.Role == bootstrapv1.HostRoleArbiter }

// Conflict returns what contradicts the role of the host, for messages; "" if nothing does. A host with
// the wrong role can only change it by a reinstallation.
func Conflict(f *facts.Facts) string {
	_, marked := f.Config.Labels[bootstrapv1.ArbiterLabel]
	switch {
	case isArbiter(f) && Of(f) != aiv1beta1.HostRoleArbiter:
		return fmt.Sprintf(
			"spec.role is %s, but Machine %s does not belong to a control plane: it lacks the label %s. If it does, restore the label. Else "+
				"delete the Machine, which wipes its host, and leave spec.role to the control plane provider",
			bootstrapv1.HostRoleArbiter,
			f.Machine.Name,
			clusterv1.MachineControlPlaneLabel,
		)
	case isArbiter(f) && withArbiter(f) && f.Install.Spec.ProvisionRequirements.ArbiterAgents == 0:
		return fmt.Sprintf(
			"AgentClusterInstall %s has no field spec.provisionRequirements.arbiterAgents for this arbiter: the assisted-service of "+
				"this hub, or its CustomResourceDefinitions, is from before arbiters: upgrade it",
			f.Install.Name,
		)
	case isArbiter(f) && f.Install != nil && f.Install.Spec.ProvisionRequirements.ArbiterAgents == 0:
		return fmt.Sprintf(
			"spec.role is %s, but AgentClusterInstall %s counts no arbiters (spec.provisionRequirements.arbiterAgents is 0): if spec.arbiter of "+
				"the control plane is not set, delete Machine %s, which wipes its host; another Machine replaces it. Else see the condition Installed "+
				"of the control plane",
			bootstrapv1.HostRoleArbiter,
			f.Install.Name,
			f.Machine.Name,
		)
	case marked && Of(f) == aiv1beta1.HostRoleMaster:
		return fmt.Sprintf(
			"the label %s marks an arbiter, but spec.role does not: remove the label, and it becomes a master; or delete Machine %s, which "+
				"wipes its host, and one of the missing role takes its place",
			bootstrapv1.ArbiterLabel,
			f.Machine.Name,
		)
	}
	return ""
}

// TwoNodes reports whether the cluster is a two-node cluster with fencing, which assisted-service derives
// from two masters without an arbiter. The number of arbiters alone proves nothing: a hub whose
// AgentClusterInstalls lack the field drops it.
func TwoNodes(f *facts.Facts) bool {
	if f.Install == nil || withArbiter(f) {
		return false
	}
	wanted := f.Install.Spec.ProvisionRequirements
	return wanted.ControlPlaneAgents == 2 && wanted.ArbiterAgents == 0
}

// withArbiter reports whether the control plane provider marks the cluster as one with an arbiter.
func withArbiter(f *facts.Facts) bool {
	return f.Install != nil && metav1.HasAnnotation(f.Install.ObjectMeta, bootstrapv1.ClusterWithArbiterAnnotation)
}

// Fenced reports whether the other node of the cluster fences the Machine's host.
func Fenced(f *facts.Facts) bool {
	return f.Machine != nil && TwoNodes(f) && Of(f) == aiv1beta1.HostRoleMaster
}

// FencingSecretName returns the name of the Secret from which assisted-service reads the credentials of the
// host's BMC.
func FencingSecretName(f *facts.Facts) string { return f.Config.Name + "-fencing-credentials" }
