package facts

import (
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
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

// OwnSet returns our ClusterImageSet of a name; nil if there is none.
func (f *Facts) OwnSet(name string) *hivev1.ClusterImageSet {
	for i := range f.OwnSets {
		if f.OwnSets[i].Name == name {
			return &f.OwnSets[i]
		}
	}
	return nil
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
