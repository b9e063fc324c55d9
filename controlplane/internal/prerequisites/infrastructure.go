package prerequisites

import (
	"context"

	"k8s.io/utils/ptr"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
)

// Infrastructure waits for the infrastructure cluster. The phases before it do not need the infrastructure cluster, so that
// they report errors of the user early.
func Infrastructure(_ context.Context, s *scope.Scope) (bool, error) {
	switch {
	case !ptr.Deref(s.Cluster.Status.Initialization.InfrastructureProvisioned, false):
		s.Block(controlplanev1.WaitingForClusterInfrastructureReason, "waiting for the Cluster's infrastructure to be provisioned")
		return false, nil
	case !s.Cluster.Spec.ControlPlaneEndpoint.IsValid():
		s.Block(controlplanev1.WaitingForControlPlaneEndpointReason, "waiting for Cluster.spec.controlPlaneEndpoint: "+
			"set it in the infrastructure cluster (for Metal3: Metal3Cluster.spec.controlPlaneEndpoint)")
		return false, nil
	}
	return true, nil
}
