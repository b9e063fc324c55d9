package hostconfig

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

// relabel gives our InfraEnv its labels back, where somebody took them off: by them we and others find it, long after
// anything else of it is stated.
func (r *Reconciler) relabel(ctx context.Context, s *scope) (bool, error) {
	if !s.NamesakeUnlabeled || s.Cluster == nil {
		return true, nil
	}
	// With the uid the API server refuses it for an InfraEnv that was created again under the same name, maybe by somebody else.
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:%q,%q:%q}}}`, s.Namesake.UID,
		clusterv1.ClusterNameLabel, s.Cluster.Name, bootstrapv1.ConfigNameLabel, format.MustFormatValue(s.Config.Name))
	labelled := s.Namesake.DeepCopy()
	if err := r.Client.Patch(ctx, labelled, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldOwner)); err != nil {
		return false, fmt.Errorf("cannot label InfraEnv %s: %w", s.Namesake.Name, err)
	}
	return true, nil
}
