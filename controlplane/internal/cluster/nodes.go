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

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// nodes are the Nodes of a cluster. Their status changes every few minutes, and is not read any more once a
// Node has a provider ID.
var nodes = resource{name: "Nodes", path: "/api/v1/nodes", read: readNodes, readChange: readNodeChange}

func readNodes(ctx context.Context, c client.Client) (string, func(*connection), error) {
	var found nodeList
	version, err := EachNode(ctx, c, func(node *corev1.Node) { found.put(factsOf(node)) })
	if err != nil {
		return "", nil, err
	}
	return version, func(conn *connection) { conn.nodes = slices.Clip(found) }, nil
}

// nodeList holds Nodes in the order of their names. Most clusters have few Nodes, for which a map would take
// ten times the memory.
type nodeList []facts.Node

func (n nodeList) find(name string) (int, bool) {
	return slices.BinarySearchFunc(n, name, func(node facts.Node, name string) int { return strings.Compare(node.Name, name) })
}

// get returns the Node with a name, or an empty one if it does not exist.
func (n nodeList) get(name string) facts.Node {
	if at, found := n.find(name); found {
		return n[at]
	}
	return facts.Node{}
}

// apply adds a Node, or replaces the Node with its name.
func (n *nodeList) put(node facts.Node) {
	at, found := n.find(node.Name)
	if found {
		(*n)[at] = node
		return
	}
	*n = slices.Insert(*n, at, node)
}

// remove removes a Node, unless a recreated Node with its name was already read.
func (n *nodeList) remove(name string, uid types.UID) {
	if at, found := n.find(name); found && (*n)[at].UID == uid {
		*n = slices.Delete(*n, at, at+1)
	}
}

func factsOf(n *corev1.Node) facts.Node {
	config, controlPlane := n.Annotations[CurrentConfigAnnotation], ofControlPlane(n.Labels)
	return facts.Node{
		Name: n.Name, UID: n.UID, ProviderID: n.Spec.ProviderID, HostUID: n.Labels[metal3.HostUIDLabel], ControlPlane: controlPlane,
		Config:       config,
		Reconfigured: controlPlane && reconfigured(config, n.Annotations[DesiredConfigAnnotation]),
	}
}

// controlPlaneLabels are the labels of Nodes that run an etcd member. An arbiter has only its own label.
var controlPlaneLabels = []string{
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master",
	"node-role.kubernetes.io/arbiter",
}

func ofControlPlane(labels map[string]string) bool {
	return slices.ContainsFunc(controlPlaneLabels, func(label string) bool { _, labeled := labels[label]; return labeled })
}

// reconfigured reports whether the machine config operator is changing the configuration of a Node.
func reconfigured(current, desired string) bool {
	return current != "" && desired != "" && current != desired
}

// readNodeChange reads a whole Node only until it has a provider ID, which never changes.
func readNodeChange(ctx context.Context, conn *connection, access *conn.Access, e watchEvent) (func(*connection), error) {
	name, uid := e.Object.Metadata.Name, e.Object.Metadata.UID
	removed := func(conn *connection) { conn.nodes.remove(name, uid) }
	if e.Type == watch.Deleted {
		return removed, nil
	}
	conn.mu.Lock()
	known := conn.nodes.get(name)
	conn.mu.Unlock()
	if known.UID == uid && known.ProviderID != "" {
		annotations := e.Object.Metadata.Annotations
		known.HostUID, known.ControlPlane, known.Config = e.Object.Metadata.Labels[metal3.HostUIDLabel],
			ofControlPlane(e.Object.Metadata.Labels), annotations.CurrentConfig
		known.Reconfigured = known.ControlPlane && reconfigured(annotations.CurrentConfig, annotations.DesiredConfig)
		return func(conn *connection) { conn.nodes.put(known) }, nil
	}
	node := &corev1.Node{}
	err := access.Call(func(c client.Client) error { return c.Get(ctx, client.ObjectKey{Name: name}, node) })
	switch {
	case apierrors.IsNotFound(err):
		return removed, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read Node %s of the workload cluster: %w", name, err)
	}
	return func(conn *connection) { conn.nodes.put(factsOf(node)) }, nil
}
