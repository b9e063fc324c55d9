package infraenv

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
)

// Relabel restores the labels of our InfraEnv if another client removed them. We and other clients find the
// InfraEnv by its labels, long after the last write of its other fields.
func (i *Registrar) Relabel(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.NamesakeUnlabeled || s.Cluster == nil {
		return true, nil
	}
	// The uid makes the API server refuse the patch for an InfraEnv that was created again under the same name, maybe
	// by another client.
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:%q,%q:%q}}}`, s.Namesake.UID,
		clusterv1.ClusterNameLabel, s.Cluster.Name, bootstrapv1.ConfigNameLabel, format.MustFormatValue(s.Config.Name))
	labeled := s.Namesake.DeepCopy()
	if err := i.client.Patch(ctx, labeled, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(writer.FieldOwner)); err != nil {
		return false, fmt.Errorf("cannot label InfraEnv %s: %w", s.Namesake.Name, err)
	}
	return true, nil
}
