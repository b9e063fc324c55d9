package facts

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// ClaimsAgent returns why the server of an Agent that a config recorded is in use for that config, for
// messages. It is "" if nothing was installed for the config. The Machine may be nil.
func ClaimsAgent(config *bootstrapv1.OpenshiftAssistedConfig, machine *clusterv1.Machine) string {
	f := &Facts{Config: config, Machine: machine}
	switch {
	case f.RecordedInstalled():
		return "is installed"
	case machine != nil && metal3.HadNode(machine):
		return "has a Node"
	case config.Status.InstallationProgress != "":
		return "is being installed"
	}
	return ""
}

// IsDeletedTogether reports whether the Cluster of the config is being deleted, and the other config belongs
// to the same Cluster. The hosts of both are then wiped, so that no claim between them protects a server. An
// absent Cluster deletes no Machine.
func (f *Facts) IsDeletedTogether(other *Facts) bool {
	return f.Deleting() && f.Cluster != nil && f.ClusterDeleting() && other.Config.Namespace == f.Config.Namespace &&
		other.ClusterName() == f.Cluster.Name
}

// Claims returns why the server of a BareMetalHost is in use by another BareMetalHost, for messages; empty if
// nothing shows that.
func (f *Facts) Claims(host *metal3.Host) []string {
	var claims []string
	for _, other := range f.Claimants[host.Name] {
		if claim := metal3.ClaimedBy(host, other); claim != "" {
			claims = append(claims, claim)
		}
	}
	return claims
}
