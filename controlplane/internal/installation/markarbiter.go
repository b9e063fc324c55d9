package installation

import (
	"context"
	"fmt"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
)

// MarkArbiter restores the annotation of the AgentClusterInstall by which the bootstrap provider knows that the cluster has
// an arbiter. Until the installation begins, the registration writes the annotation.
func (w *MetadataWriter) MarkArbiter(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.Begun || s.Arbiters() == 0 || !ownership.OwnsInstall(s.Facts) || !s.Install.DeletionTimestamp.IsZero() ||
		metav1.HasAnnotation(s.Install.ObjectMeta, bootstrapv1.ClusterWithArbiterAnnotation) {
		return true, nil
	}
	err := patchInstall(ctx, w.client, s.Install, func(install *hiveext.AgentClusterInstall) {
		metav1.SetMetaDataAnnotation(&install.ObjectMeta, bootstrapv1.ClusterWithArbiterAnnotation, "")
	})
	if err != nil {
		return false, fmt.Errorf("cannot annotate that the cluster has an arbiter: %w", err)
	}
	return true, nil
}
