package installation

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired/registration"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// MarkInstalled sets spec.installed of the ClusterDeployment once, as Hive does on a hub with Hive. An assisted-service
// that has lost its database then registers the cluster as installed. MarkInstalled restores missing labels first: see
// Relabel.
func (w *MetadataWriter) MarkInstalled(ctx context.Context, s *scope.Scope) (bool, error) {
	deployment, err := w.relabel(ctx, s)
	if err != nil {
		return false, err
	}
	if !s.Installed() || !ownership.OwnsDeployment(s.Facts) || !ownership.OwnsInstall(s.Facts) || deployment.Spec.Installed ||
		s.Install.Spec.ClusterMetadata == nil || !deployment.DeletionTimestamp.IsZero() {
		return true, nil
	}
	installed, err := registration.InstalledClusterDeployment(s.Facts, deployment)
	if err != nil {
		return false, err
	}
	const request = "mark the cluster as installed"
	switch err := w.writer.Apply(ctx, s, installed, deployment); {
	case kube.IsRefused(err):
		w.writer.Refused(s, request) // no phase depends on the mark
		ctrl.LoggerFrom(ctx).Error(err, "ClusterDeployment cannot be marked as installed")
		return true, nil
	case err != nil:
		return false, fmt.Errorf("cannot mark ClusterDeployment %s as installed: %w", deployment.Name, err)
	}
	w.writer.Accepted(s, request)
	return true, nil
}
