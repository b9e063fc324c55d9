package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/tokens"
)

// tokenSecrets are the Secrets that tokens are bound to. The deletion of its Secret ends a token.
var tokenSecrets = resource{
	name: "Secrets", path: tokens.Path, selector: tokens.Selector,
	read: func(ctx context.Context, c client.Client) (string, func(*connection), error) {
		version, found, err := tokens.Read(ctx, c)
		return version, func(conn *connection) { conn.tokens = found }, err
	},
	readChange: func(_ context.Context, _ *connection, _ *conn.Access, e watchEvent) (func(*connection), error) {
		return func(conn *connection) {
			if e.Type == watch.Deleted {
				conn.tokens.Delete(e.Object.Metadata.UID)
			} else {
				conn.tokens.Insert(e.Object.Metadata.UID)
			}
		}, nil
	},
}

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
