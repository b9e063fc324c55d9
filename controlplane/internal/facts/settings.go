package facts

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/openshift"
)

// Settings returns the names, for messages, of what the user edits to change the control plane.
func (f *Facts) Settings() openshift.Settings {
	return openshift.SettingsOf(InTopology(f.ControlPlane))
}

// InTopology reports whether an object belongs to the topology of a Cluster, which reverts the edits of a user.
func InTopology(obj metav1.Object) bool {
	_, owned := obj.GetLabels()[clusterv1.ClusterTopologyOwnedLabel]
	return owned
}
