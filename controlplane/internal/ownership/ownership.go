// Package ownership concludes from the facts of a reconcile which objects belong to a control plane. It has no client.
package ownership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
)

// OwnsDeployment reports whether the ClusterDeployment of our name exists and belongs to this control plane.
func OwnsDeployment(f *facts.Facts) bool { return f.Deployment != nil && belongsToUs(f, f.Deployment) }

// OwnsInstall reports whether the AgentClusterInstall of our name exists and belongs to this control plane.
func OwnsInstall(f *facts.Facts) bool { return f.Install != nil && belongsToUs(f, f.Install) }

// belongsToUs reports whether the ClusterDeployment or AgentClusterInstall of our name belongs to this
// control plane. Labels and the recorded UID of the Cluster decide if they exist. A client may have removed
// them, as GitOps tools do with unknown labels. Then the fields that only this provider writes decide. A
// field of either object is enough, because they belong together.
func belongsToUs(f *facts.Facts, obj metav1.Object) bool {
	switch f.Owner().ClaimOf(obj) {
	case contract.Ours:
		return true
	case contract.Foreign:
		return false
	case contract.Unclaimed:
	}
	return pairOfOurs(f)
}

// OwnsDrainRule reports whether the MachineDrainRule of our name belongs to this control plane. The labels of
// a rule without owner decide, because a restore drops owner references.
func OwnsDrainRule(f *facts.Facts, rule metav1.Object) bool {
	if owner := metav1.GetControllerOf(rule); owner != nil {
		return owner.UID == f.ControlPlane.UID
	}
	return f.Ours(rule)
}

func isForeign(f *facts.Facts, obj metav1.Object) bool {
	return f.Owner().ClaimOf(obj) == contract.Foreign
}

// pairOfOurs reports whether ClusterDeployment and AgentClusterInstall name each other, and one of them has a
// field that only this provider writes.
func pairOfOurs(f *facts.Facts) bool {
	d, i := f.Deployment, f.Install
	switch {
	case d != nil && (d.Spec.ClusterInstallRef == nil || d.Spec.ClusterInstallRef.Name != f.ControlPlane.Name || isForeign(f, d)):
		return false
	case i != nil && (i.Spec.ClusterDeploymentRef.Name != f.ControlPlane.Name || isForeign(f, i)):
		return false
	case d != nil && (f.Ours(d) || d.Annotations[assisted.OpenShiftVersionAnnotation] != ""):
		return true
	}
	return i != nil && (f.Ours(i) || f.OwnSet(facts.RegisteredSetOf(i)) != nil)
}

// RegisteredVersion returns the release with which the cluster is registered, with leading v; "" if it is
// not.
func RegisteredVersion(f *facts.Facts) string {
	if OwnsDeployment(f) && f.Deployment.Annotations[assisted.OpenShiftVersionAnnotation] != "" {
		return "v" + f.Deployment.Annotations[assisted.OpenShiftVersionAnnotation]
	}
	return ""
}
