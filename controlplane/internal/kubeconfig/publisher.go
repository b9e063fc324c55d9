// Package kubeconfig publishes the kubeconfig of a workload cluster. During the installation it publishes a copy of
// assisted-service's kubeconfig. Afterwards it replaces the credentials by a token, and renews the token.
package kubeconfig

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/authorities"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/tokens"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

// rememberedSecrets is more than the clusters of one hub.
const rememberedSecrets = 8192

// Workloads issues and revokes tokens of workload clusters, and reads the certificate authorities of their API servers.
type Workloads interface {
	IssueToken(ctx context.Context, cluster client.ObjectKey) (tokens.Token, error)
	RevokeToken(ctx context.Context, cluster client.ObjectKey, token tokens.Token) error
	HasToken(ctx context.Context, cluster client.ObjectKey, boundTo types.UID) (bool, error)
	Authorities(ctx context.Context, cluster client.ObjectKey) (authorities.Observed, error)
}

// Publisher publishes the kubeconfig of a cluster, and renews its credentials.
type Publisher struct {
	live      client.Reader
	workloads Workloads
	writer    *writer.Writer
	clock     clock.PassiveClock
	// adminDigests holds the digests of assisted-service's kubeconfigs by version of their Secrets.
	adminDigests *lru.Cache[string, string]
	// foreignRecoveries holds the versions of foreign Secrets that have the name of a copy of assisted-service's
	// kubeconfig. See recoveryKey.
	foreignRecoveries *lru.Cache[string, struct{}]
	// withdrawals counts the connections since a spec has withdrawn authorities, by the UID of the control plane.
	withdrawals *lru.Cache[types.UID, withdrawal]
	// withdrawn holds the names of the withdrawn authorities that published kubeconfigs still trust.
	withdrawn *lru.Cache[withdrawnKey, []string]
}

// New returns a Publisher that reads Secrets with live, past the cache.
func New(live client.Reader, workloads Workloads, w *writer.Writer, c clock.PassiveClock) *Publisher {
	return &Publisher{
		live: live, workloads: workloads, writer: w, clock: c,
		adminDigests:      lru.New[string, string](rememberedSecrets),
		foreignRecoveries: lru.New[string, struct{}](rememberedSecrets),
		withdrawals:       lru.New[types.UID, withdrawal](rememberedSecrets),
		withdrawn:         lru.New[withdrawnKey, []string](rememberedSecrets),
	}
}
