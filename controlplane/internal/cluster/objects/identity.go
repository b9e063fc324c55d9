package objects

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// Identify reads the identity of a cluster.
func Identify(ctx context.Context, remote client.Client) (workload.Identity, error) {
	version := &configv1.ClusterVersion{}
	if err := remote.Get(ctx, client.ObjectKey{Name: clusterVersion.Name}, version); err != nil {
		return workload.Identity{}, fmt.Errorf("cannot read the ClusterVersion of the workload cluster: %w", err)
	}
	infrastructure := &configv1.Infrastructure{}
	if err := remote.Get(ctx, client.ObjectKey{Name: "cluster"}, infrastructure); err != nil {
		return workload.Identity{}, fmt.Errorf("cannot read the Infrastructure of the workload cluster: %w", err)
	}
	return workload.Identity{ClusterID: string(version.Spec.ClusterID), InfraID: infrastructure.Status.InfrastructureName}, nil
}
