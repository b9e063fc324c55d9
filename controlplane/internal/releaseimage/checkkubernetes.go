package releaseimage

import (
	"context"
	"errors"
	"fmt"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/openshift"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/release"
)

// CheckKubernetes blocks an installation if the spec has another Kubernetes version than the release. An installed cluster
// would keep the difference: from 1.14 on Cluster API accepts no other version for a topology whose kubelets have another
// version. The first query of the registry blocks the installation as well, a later one does not. If the version in the
// release image cannot be read, as on a disconnected hub, only the minor version is compared.
func (r *Resolver) CheckKubernetes(ctx context.Context, s *scope.Scope) (bool, error) {
	wanted := versioning.WantedKubernetes(s.Facts)
	if s.Begun || wanted == "" {
		return true, nil
	}
	contained, unknown, err := r.KubernetesVersion(ctx, s, s.Found.Version, s.Found.ReleaseImage)
	switch {
	case err != nil:
		return false, err
	case errors.Is(unknown, release.ErrPending) && s.Install == nil:
		s.Block(controlplanev1.WaitingForReleaseImageReason, fmt.Sprintf("Reading the Kubernetes version of release %s from its image",
			s.Found.Version))
		return false, nil
	}
	settings := s.Settings()
	settings.Provisioning = true
	if conflict := openshift.KubernetesConflict(s.Found.Version, contained, wanted, settings); conflict != "" {
		s.Block(controlplanev1.KubernetesVersionMismatchReason, conflict)
		return false, nil
	}
	return true, nil
}
