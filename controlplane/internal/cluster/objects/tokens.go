package objects

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/tokens"
)

// tokenSecrets are the Secrets that tokens are bound to. The deletion of its Secret ends a token.
var tokenSecrets = Resource{
	Name: "Secrets", Path: tokens.Path, Selector: tokens.Selector,
	Read: func(ctx context.Context, c client.Client) (string, func(*State), error) {
		version, found, err := tokens.Read(ctx, c)
		return version, func(s *State) { s.tokens = found }, err
	},
	readChange: func(_ context.Context, _ Cluster, e Event) (func(*State), error) {
		return func(s *State) {
			if e.Type == watch.Deleted {
				s.tokens.Delete(e.Object.Metadata.UID)
			} else {
				s.tokens.Insert(e.Object.Metadata.UID)
			}
		}, nil
	},
}
