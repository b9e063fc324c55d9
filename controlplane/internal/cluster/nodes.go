package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// nodes are the Nodes of a cluster. Their status changes every few minutes, and is not read any more once a
// Node has a provider ID.
var nodes = resource{name: "Nodes", path: "/api/v1/nodes", read: readNodes, readChange: readNodeChange}

// readNodeChange reads a whole Node only until it has a provider ID, which never changes.
func readNodeChange(ctx context.Context, conn *connection, access *conn.Access, e watchEvent) (func(*connection), error) {
	name, uid := e.Object.Metadata.Name, e.Object.Metadata.UID
	removed := func(conn *connection) { conn.nodes.Remove(name, uid) }
	if e.Type == watch.Deleted {
		return removed, nil
	}
	conn.mu.Lock()
	known := conn.nodes.Get(name)
	conn.mu.Unlock()
	if known.UID == uid && known.ProviderID != "" {
		annotations := e.Object.Metadata.Annotations
		known.HostUID, known.ControlPlane, known.Config = e.Object.Metadata.Labels[metal3.HostUIDLabel],
			objects.OfControlPlane(e.Object.Metadata.Labels), annotations.CurrentConfig
		known.Reconfigured = known.ControlPlane && objects.Reconfigured(annotations.CurrentConfig, annotations.DesiredConfig)
		return func(conn *connection) { conn.nodes.Put(known) }, nil
	}
	node := &corev1.Node{}
	err := access.Call(func(c client.Client) error { return c.Get(ctx, client.ObjectKey{Name: name}, node) })
	switch {
	case apierrors.IsNotFound(err):
		return removed, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read Node %s of the workload cluster: %w", name, err)
	}
	return func(conn *connection) { conn.nodes.Put(objects.NodeOf(node)) }, nil
}

func readNodes(ctx context.Context, c client.Client) (string, func(*connection), error) {
	version, found, err := objects.ReadNodes(ctx, c)
	return version, func(conn *connection) { conn.nodes = found }, err
}
