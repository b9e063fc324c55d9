package controlplane

import (
	"context"
	"fmt"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// metadataOwner is the field manager of what is passed on. It is another than that of the registration, which says other things at other times: what one of them says no more is withdrawn.
const metadataOwner = FieldOwner + "-metadata"

// passOn gives the ClusterDeployment and the AgentClusterInstall the labels and annotations of the control plane, and takes back those that it has no more.
func (r *Reconciler) passOn(ctx context.Context, s *scope) (bool, error) {
	for _, obj := range s.registration() {
		if !obj.GetDeletionTimestamp().IsZero() {
			continue
		}
		kind, err := r.Client.GroupVersionKindFor(obj)
		if err != nil {
			return false, fmt.Errorf("cannot tell the kind of %T: %w", obj, err)
		}
		if err := r.applyBy(ctx, s, r.metadata, reconcile.Key("metadata "+kind.Kind, obj), desired.PassedOn(s.ControlPlane, kind, obj), obj); err != nil {
			return false, fmt.Errorf("cannot pass labels and annotations on to %s %s: %w", kind.Kind, obj.GetName(), err)
		}
	}
	return true, nil
}
