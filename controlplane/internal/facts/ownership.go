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
	// ResolvedFromAnnotation holds, on a ClusterImageSet of ours, the image by tag that its digest was looked up from.
	ResolvedFromAnnotation = "controlplane.cluster.x-k8s.io/resolved-from"
	// LookedUpThroughAnnotation holds, on a ClusterImageSet of ours, the version of the mirrors, authorities and pull
	// secret with which the digest was looked up, or LookedUpDirectly. It is absent if they were not recorded.
	LookedUpThroughAnnotation = "controlplane.cluster.x-k8s.io/looked-up-through"
	// ImportedAnnotation marks an AgentClusterInstall that was made for a cluster that had been installed elsewhere.
	ImportedAnnotation = "controlplane.cluster.x-k8s.io/imported"
)

// LookedUpDirectly is the value of LookedUpThroughAnnotation without mirrors and authorities.
const LookedUpDirectly = "none"

// OwnsDeployment reports whether there is a ClusterDeployment of our name, and it stands for this control plane.
func (f *Facts) OwnsDeployment() bool { return f.Deployment != nil && f.standsForUs(f.Deployment) }

// OwnsInstall reports whether there is an AgentClusterInstall of our name, and it stands for this control plane.
func (f *Facts) OwnsInstall() bool { return f.Install != nil && f.standsForUs(f.Install) }

// standsForUs reports whether the ClusterDeployment or AgentClusterInstall of our name stands for this control plane.
// Labels and the recorded UID of the Cluster decide, where there are some. Somebody may have stripped them, as GitOps
// tools do that do not know them; then it is decided by what only we write, in either of the two, for they belong
// together.
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

// OwnsDrainRule reports whether the MachineDrainRule of our name is ours. A rule that lost its owner, as in a restore,
// is ours by its labels.
func (f *Facts) OwnsDrainRule(rule metav1.Object) bool {
	if owner := metav1.GetControllerOf(rule); owner != nil {
		return owner.UID == f.ControlPlane.UID
	}
	return f.Ours(rule)
}

func (f *Facts) isForeign(obj metav1.Object) bool { return f.Owner().ClaimOf(obj) == contract.Foreign }

// pairOfOurs reports whether ClusterDeployment and AgentClusterInstall name each other, and one of them bears what only we write.
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

// OwnSet returns our ClusterImageSet of a name; nil when there is none.
func (f *Facts) OwnSet(name string) *hivev1.ClusterImageSet {
	for i := range f.OwnSets {
		if f.OwnSets[i].Name == name {
			return &f.OwnSets[i]
		}
	}
	return nil
}

// RegisteredVersion is the release with which the cluster is registered, with leading v; empty when it is not.
func (f *Facts) RegisteredVersion() string {
	if f.OwnsDeployment() && f.Deployment.Annotations[assisted.OpenShiftVersionAnnotation] != "" {
		return "v" + f.Deployment.Annotations[assisted.OpenShiftVersionAnnotation]
	}
	return ""
}

// RegisteredSetOf names the ClusterImageSet with which a cluster is registered; empty before it is.
func RegisteredSetOf(install *hiveext.AgentClusterInstall) string {
	if install == nil || install.Spec.ImageSetRef == nil {
		return ""
	}
	return install.Spec.ImageSetRef.Name
}

// AdminKubeconfigOf names the Secret in which assisted-service keeps the kubeconfig; empty before it does.
func AdminKubeconfigOf(install *hiveext.AgentClusterInstall) string {
	if install == nil || install.Spec.ClusterMetadata == nil {
		return ""
	}
	return install.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name
}
