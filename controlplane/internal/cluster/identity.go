package cluster

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// Identify reads the identity of a cluster, which must be connected. It is called once, if the hub does not
// have the identity.
func (c *Clusters) Identify(ctx context.Context, cluster client.ObjectKey) (facts.Identity, error) {
	var identity facts.Identity
	err := c.Connect(ctx, cluster, func(ctx context.Context, remote *conn.Conn) (err error) {
		identity, err = identify(ctx, remote)
		return err
	})
	return identity, err
}

func identify(ctx context.Context, remote client.Client) (facts.Identity, error) {
	version := &configv1.ClusterVersion{}
	if err := remote.Get(ctx, client.ObjectKey{Name: clusterVersion.name}, version); err != nil {
		return facts.Identity{}, fmt.Errorf("cannot read the ClusterVersion of the workload cluster: %w", err)
	}
	infrastructure := &configv1.Infrastructure{}
	if err := remote.Get(ctx, client.ObjectKey{Name: "cluster"}, infrastructure); err != nil {
		return facts.Identity{}, fmt.Errorf("cannot read the Infrastructure of the workload cluster: %w", err)
	}
	return facts.Identity{ClusterID: string(version.Spec.ClusterID), InfraID: infrastructure.Status.InfrastructureName}, nil
}
