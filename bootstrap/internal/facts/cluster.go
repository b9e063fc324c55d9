package facts

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// GivenUp reports whether the installation failed and is given up: its hosts have no Nodes.
func (f *Facts) GivenUp() bool {
	return f.Install != nil && metav1.HasAnnotation(f.Install.ObjectMeta, bootstrapv1.InstallationGivenUpAnnotation) &&
		f.Installation().Phase == assisted.PhaseFailed
}

// Installation returns the state of the installation of the cluster in assisted-service.
func (f *Facts) Installation() assisted.Installation { return assisted.Observe(f.Install) }

// ClusterName returns the name of the Machine's Cluster, or of the Cluster label of a config without Machine;
// "" if neither is known.
func (f *Facts) ClusterName() string {
	if f.Machine != nil {
		return f.Machine.Spec.ClusterName
	}
	return f.Config.Labels[clusterv1.ClusterNameLabel]
}

// ClusterDeleting reports whether the whole cluster is being deleted, so that no clean-up inside it is
// needed.
func (f *Facts) ClusterDeleting() bool {
	return f.Cluster == nil || !f.Cluster.DeletionTimestamp.IsZero()
}
