package facts

import (
	"cmp"
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

// WaitsForNode reports whether a Machine got its bootstrap data, but Cluster API has not found its Node. The
// host may be running, or may be about to boot.
func WaitsForNode(m *clusterv1.Machine) bool {
	return m.Spec.Bootstrap.DataSecretName != nil && !metal3.HadNode(m)
}

// AllMachines returns the Machines of the control plane and the workers.
func (f *Facts) AllMachines() []*clusterv1.Machine { return slices.Concat(f.Machines, f.Workers) }
