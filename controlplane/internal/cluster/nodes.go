package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// nodes is what is known of Nodes. Their status, which changes every few minutes, is not transferred any more once they have a provider ID.
var nodes = resource{name: "Nodes", path: "/api/v1/nodes", read: readNodes, take: takeNode}

func readNodes(ctx context.Context, c client.Client) (string, func(*connection), error) {
	var found nodeList
	version, err := EachNode(ctx, c, func(node *corev1.Node) { found.put(factsOf(node)) })
	if err != nil {
		return "", nil, err
	}
	return version, func(l *connection) { l.nodes = slices.Clip(found) }, nil
}

// nodeList are Nodes in the order of their names. Most clusters have few, of which a map would take ten times the memory.
type nodeList []facts.Node

func (n nodeList) find(name string) (int, bool) {
	return slices.BinarySearchFunc(n, name, func(node facts.Node, name string) int { return strings.Compare(node.Name, name) })
}

// get is the Node of that name; empty: there is none.
func (n nodeList) get(name string) facts.Node {
	if at, found := n.find(name); found {
		return n[at]
	}
	return facts.Node{}
}

// put adds a Node, or replaces the one of its name.
func (n *nodeList) put(node facts.Node) {
	at, found := n.find(node.Name)
	if found {
		(*n)[at] = node
		return
	}
	*n = slices.Insert(*n, at, node)
}

// remove takes out a Node, unless another took its place, and was read already.
func (n *nodeList) remove(name string, uid types.UID) {
	if at, found := n.find(name); found && (*n)[at].UID == uid {
		*n = slices.Delete(*n, at, at+1)
	}
}

func factsOf(n *corev1.Node) facts.Node {
	config, controlPlane := n.Annotations[CurrentConfigAnnotation], ofControlPlane(n.Labels)
	return facts.Node{
		Name: n.Name, UID: n.UID, ProviderID: n.Spec.ProviderID, HostUID: n.Labels[metal3.HostUIDLabel], ControlPlane: controlPlane, Config: config,
		Reconfigured: controlPlane && reconfigured(config, n.Annotations[DesiredConfigAnnotation]),
	}
}

// controlPlaneLabels are those of the Nodes of a control plane, which run a member of etcd; of an arbiter only its own.
var controlPlaneLabels = []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/arbiter"}

func ofControlPlane(labels map[string]string) bool {
	return slices.ContainsFunc(controlPlaneLabels, func(label string) bool { _, labeled := labels[label]; return labeled })
}

// reconfigured reports whether a Node is being brought to another machine configuration.
func reconfigured(current, desired string) bool {
	return current != "" && desired != "" && current != desired
}

// takeNode reads a Node as a whole as long as it has no provider ID, which is set once.
func takeNode(ctx context.Context, l *connection, access *access, e watchEvent) (func(*connection), error) {
	name, uid := e.Object.Metadata.Name, e.Object.Metadata.UID
	gone := func(l *connection) { l.nodes.remove(name, uid) }
	if e.Type == watch.Deleted {
		return gone, nil
	}
	l.mu.Lock()
	known := l.nodes.get(name)
	l.mu.Unlock()
	if known.UID == uid && known.ProviderID != "" {
		annotations := e.Object.Metadata.Annotations
		known.HostUID, known.ControlPlane, known.Config = e.Object.Metadata.Labels[metal3.HostUIDLabel], ofControlPlane(e.Object.Metadata.Labels), annotations.CurrentConfig
		known.Reconfigured = known.ControlPlane && reconfigured(annotations.CurrentConfig, annotations.DesiredConfig)
		return func(l *connection) { l.nodes.put(known) }, nil
	}
	node := &corev1.Node{}
	err := access.call(func(c client.Client) error { return c.Get(ctx, client.ObjectKey{Name: name}, node) })
	switch {
	case apierrors.IsNotFound(err):
		return gone, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read Node %s of the workload cluster: %w", name, err)
	}
	return func(l *connection) { l.nodes.put(factsOf(node)) }, nil
}
