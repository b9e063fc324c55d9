package facts

import (
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
)

const (
	// OwnerAnnotation holds, on a ClusterImageSet of ours, <namespace>/<name> of its control plane.
	OwnerAnnotation = "controlplane.cluster.x-k8s.io/owner"
	// ResolvedFromAnnotation holds, on a ClusterImageSet of ours, the image by tag that was resolved to its
	// digest.
	ResolvedFromAnnotation = "controlplane.cluster.x-k8s.io/resolved-from"
	// ResolvedThroughAnnotation holds, on a ClusterImageSet of ours, the version of the mirrors, authorities
	// and pull secret that resolved the digest, or ResolvedDirectly. It is absent if they were not recorded.
	ResolvedThroughAnnotation = "controlplane.cluster.x-k8s.io/resolved-through"
	// ImportedAnnotation marks an AgentClusterInstall that was created for a cluster that had been installed
	// elsewhere.
	ImportedAnnotation = "controlplane.cluster.x-k8s.io/imported"
)

// ResolvedDirectly is the value of ResolvedThroughAnnotation without mirrors and authorities.
const ResolvedDirectly = "none"

// OwnsDeployment reports whether the ClusterDeployment of our name exists and belongs to this control plane.
func (f *Facts) OwnsDeployment() bool { return f.Deployment != nil && f.standsForUs(f.Deployment) }

// OwnsInstall reports whether the AgentClusterInstall of our name exists and belongs to this control plane.
func (f *Facts) OwnsInstall() bool { return f.Install != nil && f.standsForUs(f.Install) }

// standsForUs reports whether the ClusterDeployment or AgentClusterInstall of our name belongs to this
// control plane. Labels and the recorded UID of the Cluster decide if they exist. A client may have removed
// them, as GitOps tools do with unknown labels. Then the fields that only this provider writes decide. A
// field of either object is enough, because they belong together.
func (f *Facts) standsForUs(obj metav1.Object) bool {
	switch f.Owner().ClaimOf(obj) {
	case contract.Ours:
		return true
	case contract.Foreign:
		return false
	case contract.Unclaimed:
	}
	return f.pairOfOurs()
}

// OwnsDrainRule reports whether the MachineDrainRule of our name belongs to this control plane. The labels of
// a rule without owner decide, because a restore drops owner references.
func (f *Facts) OwnsDrainRule(rule metav1.Object) bool {
	if owner := metav1.GetControllerOf(rule); owner != nil {
		return owner.UID == f.ControlPlane.UID
	}
	return f.Ours(rule)
}

func (f *Facts) isForeign(obj metav1.Object) bool { return f.Owner().ClaimOf(obj) == contract.Foreign }

// pairOfOurs reports whether ClusterDeployment and AgentClusterInstall name each other, and one of them has a
// field that only this provider writes.
func (f *Facts) pairOfOurs() bool {
	d, i := f.Deployment, f.Install
	switch {
	case d != nil && (d.Spec.ClusterInstallRef == nil || d.Spec.ClusterInstallRef.Name != f.ControlPlane.Name || f.isForeign(d)):
		return false
	case i != nil && (i.Spec.ClusterDeploymentRef.Name != f.ControlPlane.Name || f.isForeign(i)):
		return false
	case d != nil && (f.Ours(d) || d.Annotations[assisted.OpenShiftVersionAnnotation] != ""):
		return true
	}
	return i != nil && (f.Ours(i) || f.OwnSet(RegisteredSetOf(i)) != nil)
}

// OwnSet returns our ClusterImageSet of a name; nil if there is none.
func (f *Facts) OwnSet(name string) *hivev1.ClusterImageSet {
	for i := range f.OwnSets {
		if f.OwnSets[i].Name == name {
			return &f.OwnSets[i]
		}
	}
	return nil
}

// RegisteredVersion returns the release with which the cluster is registered, with leading v; "" if it is
// not.
func (f *Facts) RegisteredVersion() string {
	if f.OwnsDeployment() && f.Deployment.Annotations[assisted.OpenShiftVersionAnnotation] != "" {
		return "v" + f.Deployment.Annotations[assisted.OpenShiftVersionAnnotation]
	}
	return ""
}

// RegisteredSetOf returns the name of the ClusterImageSet with which a cluster is registered; "" if it is
// not.
func RegisteredSetOf(install *hiveext.AgentClusterInstall) string {
	if install == nil || install.Spec.ImageSetRef == nil {
		return ""
	}
	return install.Spec.ImageSetRef.Name
}

// AdminKubeconfigOf returns the name of the Secret in which assisted-service keeps the kubeconfig; "" before
// it exists.
func AdminKubeconfigOf(install *hiveext.AgentClusterInstall) string {
	if install == nil || install.Spec.ClusterMetadata == nil {
		return ""
	}
	return install.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name
}
