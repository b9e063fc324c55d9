// Package prerequisites checks what an installation needs from the user and from other controllers: the Cluster, its
// infrastructure and a valid configuration.
package prerequisites

import (
	"cmp"
	"context"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/authorities"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/openshift"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// Requirements waits for the Cluster that owns the control plane, and checks the version and the name of the cluster.
func Requirements(_ context.Context, s *scope.Scope) (bool, error) {
	if s.Cluster == nil {
		s.Block(controlplanev1.WaitingForClusterReason, "waiting for the Cluster that owns this control plane (Cluster.spec.controlPlaneRef)")
		return false, nil
	}
	version, err := versions.ParseRelease(s.ControlPlane.Spec.DistributionVersion)
	if err == nil {
		err = openshift.CheckSupported(version, s.Settings())
	}
	if err != nil {
		s.Block(controlplanev1.UnsupportedVersionReason, err.Error())
		return false, nil
	}
	s.Found.Version = version
	if s.Begun {
		return true, nil
	}
	for _, err := range []error{checkName(s), authorities.Check(s.ControlPlane.Spec.Kubeconfig.AdditionalTrustBundle)} {
		if err != nil {
			s.Block(controlplanev1.InvalidConfigurationReason, err.Error())
			return false, nil
		}
	}
	return true, nil
}

// checkName returns an error if the name cannot be part of the domain of a cluster. No admission checks the name of a
// Cluster by these rules.
func checkName(s *scope.Scope) error {
	config := &s.ControlPlane.Spec.Config
	onNone := len(config.APIVIPs) == 0 && config.ExternalPlatform == nil
	return openshift.CheckClusterName(cmp.Or(config.ClusterName, s.ClusterName()), config.BaseDomain, onNone)
}
