package workload

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// nodes is what is known of Nodes. Their status, which changes every few minutes, is not transferred any more once they have a provider ID.
var nodes = resource{name: "Nodes", path: "/api/v1/nodes", read: readNodes, take: takeNode}

func readNodes(ctx context.Context, c client.Client) (string, func(*link), error) {
	list := &corev1.NodeList{}
	if err := c.List(ctx, list); err != nil {
		return "", nil, fmt.Errorf("cannot list the Nodes of the workload cluster: %w", err)
	}
	found := map[string]facts.Node{}
	for i := range list.Items {
		found[list.Items[i].Name] = factsOf(&list.Items[i])
	}
	return list.ResourceVersion, func(l *link) { l.nodes = found }, nil
}

func factsOf(n *corev1.Node) facts.Node {
	return facts.Node{Name: n.Name, UID: n.UID, ProviderID: n.Spec.ProviderID, HostUID: n.Labels[metal3.HostUIDLabel]}
}

// takeNode reads a Node as a whole as long as it has no provider ID, which is set once.
func takeNode(ctx context.Context, l *link, access *access, e watchEvent) (func(*link), error) {
	name, uid := e.Object.Metadata.Name, e.Object.Metadata.UID
	gone := func(l *link) {
		if l.nodes[name].UID == uid { // else another took its place, and was read already
			delete(l.nodes, name)
		}
	}
	if e.Type == watch.Deleted {
		return gone, nil
	}
	l.mu.Lock()
	known := l.nodes[name]
	l.mu.Unlock()
	if known.UID == uid && known.ProviderID != "" {
		known.HostUID = e.Object.Metadata.Labels[metal3.HostUIDLabel]
		return func(l *link) { l.nodes[name] = known }, nil
	}
	node := &corev1.Node{}
	err := access.call(func(c client.Client) error { return c.Get(ctx, client.ObjectKey{Name: name}, node) })
	switch {
	case apierrors.IsNotFound(err):
		return gone, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read Node %s of the workload cluster: %w", name, err)
	}
	return func(l *link) { l.nodes[name] = factsOf(node) }, nil
}
