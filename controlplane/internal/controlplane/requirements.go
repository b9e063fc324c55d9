package controlplane

import (
	"context"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/openshift"
)

// requirements waits for what Cluster API and the user have to give first.
func (r *Reconciler) requirements(_ context.Context, s *scope) (bool, error) {
	if s.Cluster == nil {
		s.block(controlplanev1.WaitingForClusterReason, "waiting for the Cluster that owns this control plane (Cluster.spec.controlPlaneRef)")
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
