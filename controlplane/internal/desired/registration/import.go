package registration

import (
	"github.com/blang/semver/v4"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// AdminKubeconfigKey is the key of the kubeconfig in assisted-service's Secret.
const AdminKubeconfigKey = "kubeconfig"

// Labels of the Secrets that assisted-service creates for a ClusterDeployment.
const (
	deploymentNameLabel = "hive.openshift.io/cluster-deployment-name"
	secretTypeLabel     = "hive.openshift.io/secret-type"
)

// ImportedClusterDeployment returns the ClusterDeployment of a cluster that was installed elsewhere and runs
// a release. It is marked as installed at its creation, so that assisted-service never sees it in another
// state.
func ImportedClusterDeployment(f *facts.Facts, running semver.Version, identity workload.Identity) *unstructured.Unstructured {
	u := ClusterDeployment(f, running)
	spec := u.Object["spec"].(map[string]any) //nolint:forcetypeassert // set above
	spec["installed"] = true
	spec["clusterMetadata"] = map[string]any{
		"clusterID":                identity.ClusterID,
		"infraID":                  identity.InfraID,
		"adminKubeconfigSecretRef": map[string]any{"name": f.AdminKubeconfigName()},
	}
	return u
}

// ImportedAgentClusterInstall returns the AgentClusterInstall of a cluster that was installed elsewhere. It
// holds the installation, in case assisted-service ever starts one. imageSet is the ClusterImageSet of the
// running release, which assisted-service needs for hosts that boot a disk image; "" if unknown.
func ImportedAgentClusterInstall(f *facts.Facts, imageSet string, identity workload.Identity) *hiveext.AgentClusterInstall {
	install := agentClusterInstall(f, imageSet)
	metav1.SetMetaDataAnnotation(&install.ObjectMeta, facts.ImportedAnnotation, "")
	install.Spec.HoldInstallation = true
	install.Spec.ClusterMetadata = &hivev1.ClusterMetadata{
		ClusterID:                identity.ClusterID,
		InfraID:                  identity.InfraID,
		AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: f.AdminKubeconfigName()},
	}
	if imageSet == "" {
		install.Spec.ImageSetRef = nil
	}
	return install
}

// AdminKubeconfig returns the Secret with which assisted-service accesses a cluster that it did not install,
// in its own format. The ClusterDeployment owns it, and it is not moved with the cluster.
func AdminKubeconfig(f *facts.Facts, deployment metav1.Object, content []byte, annotations map[string]string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   f.ControlPlane.Namespace,
			Name:        f.AdminKubeconfigName(),
			Labels:      map[string]string{deploymentNameLabel: deployment.GetName(), secretTypeLabel: "kubeconfig"},
			Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: hivev1.SchemeGroupVersion.String(), Kind: "ClusterDeployment", Name: deployment.GetName(), UID: deployment.GetUID(),
			}},
		},
		Data: map[string][]byte{AdminKubeconfigKey: content},
	}
}
