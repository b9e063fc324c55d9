package cluster

import (
	"context"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
)

var (
	clusterVersions  = healthResource(objects.ClusterVersionKind, "clusterversions")
	clusterOperators = healthResource(objects.ClusterOperatorKind, "clusteroperators")
)

// healthResource returns the resource of an OpenShift kind. Its objects are numerous and large. Only the
// objects in objects.Observed are read, when they changed.
func healthResource(kind, plural string) resource {
	path := "/apis/" + configv1.GroupVersion.String() + "/" + plural
	return resource{
		name: kind + "s", path: path,
		read: func(ctx context.Context, c client.Client) (string, func(*connection), error) {
			return readHealth(ctx, c, kind)
		},
		readChange: func(ctx context.Context, _ *connection, access *conn.Access, e watchEvent) (func(*connection), error) {
			key := objects.Key{Kind: kind, Name: e.Object.Metadata.Name}
			at := slices.Index(objects.Observed[:], key)
			if at < 0 {
				return nil, nil
			}
			var h objects.Health
			err := access.Call(func(c client.Client) (err error) {
				h, _, err = objects.ReadHealth(ctx, c, key)
				return err
			})
			return func(conn *connection) { conn.record(at, h) }, err
		},
	}
}

// readHealth reads the observed objects of a kind. The API server responds long before OpenShift's kinds are
// defined.
func readHealth(ctx context.Context, c client.Client, kind string) (string, func(*connection), error) {
	first, found := "", map[int]objects.Health{}
	for at, key := range objects.Observed {
		if key.Kind != kind {
			continue
		}
		h, version, err := objects.ReadHealth(ctx, c, key)
		if err != nil {
			return "", nil, err
		}
		if len(found) == 0 { // the watch repeats changes that happen while the other objects are read
			first = version
		}
		found[at] = h
	}
	return first, func(conn *connection) {
		for at, h := range found {
			conn.record(at, h)
		}
	}, nil
}

// record stores the health of an object. The caller holds the lock. A clock of the cluster that is ahead must
// not extend the grace period of a degraded etcd. A start in the future is replaced by the time of the first
// read.
func (c *connection) record(at int, h objects.Health) {
	before, now := c.health[at].Etcd.DegradedSince, c.clock.Now()
	if h.Etcd.DegradedSince.After(now) {
		h.Etcd.DegradedSince = now
		if !before.IsZero() {
			h.Etcd.DegradedSince = before
		}
	}
	c.health[at] = h
}
