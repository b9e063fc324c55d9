package controlplane

import (
	"context"

	"k8s.io/utils/ptr"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/openshift"
)

// requirements waits for what Cluster API and the user have to give first.
func (r *Reconciler) requirements(_ context.Context, s *scope) (bool, error) {
	switch {
	case s.Cluster == nil:
		s.block(controlplanev1.WaitingForClusterReason, "waiting for the Cluster that owns this control plane (Cluster.spec.controlPlaneRef)")
		return false, nil
	case !ptr.Deref(s.Cluster.Status.Initialization.InfrastructureProvisioned, false):
		s.block(controlplanev1.WaitingForClusterInfrastructureReason, "waiting for the Cluster's infrastructure to be provisioned")
		return false, nil
	case !s.Cluster.Spec.ControlPlaneEndpoint.IsValid():
		s.block(controlplanev1.WaitingForControlPlaneEndpointReason, "waiting for Cluster.spec.controlPlaneEndpoint: set it in the infrastructure cluster (for Metal3: Metal3Cluster.spec.controlPlaneEndpoint)")
		return false, nil
	}
	version, err := openshift.ParseVersion(s.ControlPlane.Spec.Version)
	if err == nil {
		err = openshift.CheckSupported(version)
	}
	if err != nil {
		s.block(controlplanev1.UnsupportedVersionReason, err.Error())
		return false, nil
	}
	s.found.Version = version
	return true, nil
}
