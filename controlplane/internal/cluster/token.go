package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/tokens"
)

// IssueToken issues a token of an administrator in the workload cluster, which must be connected. It creates
// the ServiceAccount if necessary.
func (c *Clusters) IssueToken(ctx context.Context, cluster client.ObjectKey) (tokens.Token, error) {
	var token tokens.Token
	err := c.Connect(ctx, cluster, func(ctx context.Context, remote *conn.Conn) (err error) {
		token, err = tokens.Issue(ctx, remote, c.Clock.Now())
		return err
	})
	return token, err
}

// RevokeToken deletes the Secret that a token is bound to. This ends the token. The cluster must be
// connected.
func (c *Clusters) RevokeToken(ctx context.Context, cluster client.ObjectKey, token tokens.Token) error {
	return c.Connect(ctx, cluster, func(ctx context.Context, remote *conn.Conn) error {
		return tokens.Revoke(ctx, remote, token)
	})
}

// HasToken reports whether the workload cluster has the Secret, by its UID, that a token is bound to. It
// queries the cluster, which must be connected.
func (c *Clusters) HasToken(ctx context.Context, cluster client.ObjectKey, boundTo types.UID) (bool, error) {
	var found sets.Set[types.UID]
	err := c.Connect(ctx, cluster, func(ctx context.Context, remote *conn.Conn) (err error) {
		_, found, err = tokens.Read(ctx, remote)
		return err
	})
	return found.Has(boundTo), err
}
