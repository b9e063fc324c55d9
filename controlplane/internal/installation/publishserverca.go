package installation

import (
	"cmp"
	"context"
	"fmt"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
)

// PublishServerCA publishes the certificates of the machine config server in the AgentClusterInstall while hosts are to join
// the installed cluster. The bootstrap provider gives them to the hosts. The last certificates stay while the cluster does
// not answer.
func (w *MetadataWriter) PublishServerCA(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.Installed() || !ownership.OwnsInstall(s.Facts) || !s.Install.DeletionTimestamp.IsZero() {
		return true, nil
	}
	published := s.Install.Annotations[bootstrapv1.MachineConfigServerCAAnnotation]
	wanted := cmp.Or(s.Workload.ServerCA, published)
	if !s.ExpectsHosts() {
		wanted = ""
	}
	if wanted == published {
		return true, nil
	}
	err := patchInstall(ctx, w.client, s.Install, func(install *hiveext.AgentClusterInstall) {
		if wanted == "" {
			delete(install.Annotations, bootstrapv1.MachineConfigServerCAAnnotation)
		} else {
			metav1.SetMetaDataAnnotation(&install.ObjectMeta, bootstrapv1.MachineConfigServerCAAnnotation, wanted)
		}
	})
	if err != nil {
		return false, fmt.Errorf("cannot publish the certificates of the machine config server: %w", err)
	}
	return true, nil
}

// PublishRelease publishes the release that the installed cluster runs in the AgentClusterInstall. The bootstrap provider
// boots hosts that join the cluster with the discovery image of that release.
func (w *MetadataWriter) PublishRelease(ctx context.Context, s *scope.Scope) (bool, error) {
	runs := cmp.Or(s.Workload.OpenShiftVersion, s.ControlPlane.Status.DistributionVersion)
	if !s.Installed() || runs == "" || !ownership.OwnsInstall(s.Facts) || !s.Install.DeletionTimestamp.IsZero() ||
		s.Install.Annotations[bootstrapv1.RunningReleaseAnnotation] == runs {
		return true, nil
	}
	err := patchInstall(ctx, w.client, s.Install, func(install *hiveext.AgentClusterInstall) {
		metav1.SetMetaDataAnnotation(&install.ObjectMeta, bootstrapv1.RunningReleaseAnnotation, runs)
	})
	if err != nil {
		return false, fmt.Errorf("cannot publish the release of the cluster: %w", err)
	}
	return true, nil
}
