package registration

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
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

// NotImportable returns why assisted-service cannot import an installed cluster that it does not know, with the reason for
// the condition; "" if it can. An imported cluster is never installed, but a cluster that is imported by mistake would be.
// Therefore the cluster itself has to report that it runs.
func NotImportable(f *facts.Facts) (reason, message string) {
	const waiting = "assisted-service does not know the installed cluster, so that no host is added; the cluster is imported "
	switch d := f.Deployment; {
	case d != nil && !d.DeletionTimestamp.IsZero():
		return controlplanev1.WaitingForImportReason, waiting + fmt.Sprintf("after the deletion of ClusterDeployment %s", d.Name)
	case d != nil && !d.Spec.Installed:
		return controlplanev1.InvalidConfigurationReason, fmt.Sprintf("AgentClusterInstall %s is missing, and ClusterDeployment %s does not "+
			"state that the cluster is installed: with both, assisted-service would install the cluster over its hosts. "+
			"Restore the AgentClusterInstall from a backup, or set spec.installed of the ClusterDeployment", f.ControlPlane.Name, d.Name)
	case !f.Workload.Connected || f.Workload.OpenShiftVersion == "":
		return controlplanev1.WaitingForImportReason, waiting +
			"when the cluster's API server answers and reports its release: see the condition Available"
	}
	if f.Arbiters() > 0 && f.Workload.ReleaseImage == "" {
		// Without a ClusterImageSet assisted-service knows no release, and then it refuses the role arbiter
		// (updateHostRole in internal/bminventory).
		return controlplanev1.WaitingForImportReason, waiting +
			"when ClusterVersion version of the cluster names the image of the current release (status.history[].image): " +
			"without it no host could join as an arbiter"
	}
	if at := slices.IndexFunc(f.AllMachines(), facts.WaitsForNode); at >= 0 {
		return controlplanev1.WaitingForImportReason, waiting + fmt.Sprintf(
			"when Cluster API has found the Node of Machine %s, which may be running: no host is discovered again for it. If it has no Node, "+
				"delete the Machine, which wipes its host",
			f.AllMachines()[at].Name,
		)
	}
	config := &f.ControlPlane.Spec.Config
	if config.PullSecretRef != nil && f.PullSecret == nil {
		return controlplanev1.PullSecretMissingReason, waiting + fmt.Sprintf(
			"when Secret %s exists: create it, as it was on the hub that the cluster comes from", f.PullSecretName(),
		)
	}
	if ref := config.ImageRegistryRef; ref != nil && slices.Contains(f.MissingConfigMaps, ref.Name) {
		return controlplanev1.ManifestsMissingReason, waiting + fmt.Sprintf(
			"when ConfigMap %s exists: create it, as it was on the hub that the cluster comes from", ref.Name,
		)
	}
	return "", ""
}
