package objects

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// Identify reads the identity of a cluster.
func Identify(ctx context.Context, remote client.Client) (facts.Identity, error) {
	version := &configv1.ClusterVersion{}
	if err := remote.Get(ctx, client.ObjectKey{Name: ClusterVersion.Name}, version); err != nil {
		return facts.Identity{}, fmt.Errorf("cannot read the ClusterVersion of the workload cluster: %w", err)
	}
	infrastructure := &configv1.Infrastructure{}
	if err := remote.Get(ctx, client.ObjectKey{Name: "cluster"}, infrastructure); err != nil {
		return facts.Identity{}, fmt.Errorf("cannot read the Infrastructure of the workload cluster: %w", err)
	}
	return facts.Identity{ClusterID: string(version.Spec.ClusterID), InfraID: infrastructure.Status.InfrastructureName}, nil
}
