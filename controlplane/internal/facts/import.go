package facts

import (
	"cmp"
	"fmt"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// adminKubeconfigSuffix is the default suffix of the Secret in which assisted-service keeps the kubeconfig.
const adminKubeconfigSuffix = "-admin-kubeconfig"

// AdminKubeconfigName returns the name of the Secret in which assisted-service keeps, or will keep, the
// kubeconfig.
func (f *Facts) AdminKubeconfigName() string {
	return cmp.Or(AdminKubeconfigOf(f.Install), f.ControlPlane.Name+adminKubeconfigSuffix)
}

// Imported reports whether the AgentClusterInstall was created for a cluster that had been installed
// elsewhere.
func (f *Facts) Imported() bool {
	if !f.OwnsInstall() {
		return false
	}
	_, imported := f.Install.Annotations[ImportedAnnotation]
	return imported
}

// WaitsForNode reports whether a Machine got its bootstrap data, but Cluster API has not found its Node. The
// host may be running, or may be about to boot.
func WaitsForNode(m *clusterv1.Machine) bool {
	return m.Spec.Bootstrap.DataSecretName != nil && !metal3.HadNode(m)
}

// NotImportable returns why assisted-service cannot import an installed cluster that it does not know; "" if
// it can. An imported cluster is never installed, but a cluster that is imported by mistake would be.
// Therefore the cluster itself has to report that it runs.
func (f *Facts) NotImportable() string {
	const waiting = "assisted-service does not know the installed cluster, so that no host is added; the cluster is imported "
	switch d := f.Deployment; {
	case d != nil && !d.DeletionTimestamp.IsZero():
		return waiting + fmt.Sprintf("after the deletion of ClusterDeployment %s", d.Name)
	case d != nil && !d.Spec.Installed:
		return fmt.Sprintf("AgentClusterInstall %s is missing, and ClusterDeployment %s does not state that the cluster is installed: with "+
			"both, assisted-service would install the cluster over its hosts. "+
			"Restore the AgentClusterInstall from a backup, or set spec.installed of the ClusterDeployment", f.ControlPlane.Name, d.Name)
	case !f.Workload.Connected || f.Workload.OpenShiftVersion == "":
		return waiting + "when the cluster's API server answers and reports its release: see the condition Available"
	}
	if f.Arbiters() > 0 && f.Workload.ReleaseImage == "" {
		// Without a ClusterImageSet assisted-service knows no release, and then it refuses the role arbiter
		// (updateHostRole in internal/bminventory).
		return waiting + "when ClusterVersion version of the cluster names the image of the current release (status.history[].image): " +
			"without it no host could join as an arbiter"
	}
	if at := slices.IndexFunc(f.allMachines(), WaitsForNode); at >= 0 {
		return waiting + fmt.Sprintf(
			"when Cluster API has found the Node of Machine %s, which may be running: no host is discovered again for it. If it has no Node, "+
				"delete the Machine, which wipes its host",
			f.allMachines()[at].Name,
		)
	}
	config := &f.ControlPlane.Spec.Config
	if config.PullSecretRef != nil && f.PullSecret == nil {
		return waiting + fmt.Sprintf("when Secret %s exists: create it, as it was on the hub that the cluster comes from", f.PullSecretName())
	}
	if ref := config.ImageRegistryRef; ref != nil && slices.Contains(f.MissingConfigMaps, ref.Name) {
		return waiting + fmt.Sprintf("when ConfigMap %s exists: create it, as it was on the hub that the cluster comes from", ref.Name)
	}
	return ""
}

func (f *Facts) allMachines() []*clusterv1.Machine { return slices.Concat(f.Machines, f.Workers) }
