package cluster

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/authorities"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
)

// Authorities reads the certificate authorities of the API server of a cluster, which must be connected.
func (c *Clusters) Authorities(ctx context.Context, cluster client.ObjectKey) (authorities.Observed, error) {
	var observed authorities.Observed
	err := c.connect(ctx, cluster, func(ctx context.Context, known *connection, remote *conn.Conn) (err error) {
		observed.Reported, err = authorities.Read(ctx, remote)
		observed.Serving, observed.Since = known.serving.Fingerprints(), known.serving.Began()
		return err
	})
	if err != nil {
		return authorities.Observed{}, err
	}
	return observed, nil
}
