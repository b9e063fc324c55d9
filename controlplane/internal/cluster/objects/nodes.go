package objects

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// ReadNodes reads all Nodes, and returns the version at which to start their watch.
func ReadNodes(ctx context.Context, c client.Client) (version string, nodes NodeList, err error) {
	var found NodeList
	version, err = EachNode(ctx, c, func(node *corev1.Node) { found.Put(NodeOf(node)) })
	if err != nil {
		return "", nil, err
	}
	return version, slices.Clip(found), nil
}

// NodeList holds Nodes in the order of their names. Most clusters have few Nodes, for which a map would take
// ten times the memory.
type NodeList []workload.Node

func (n NodeList) find(name string) (int, bool) {
	return slices.BinarySearchFunc(n, name, func(node workload.Node, name string) int { return strings.Compare(node.Name, name) })
}

// Get returns the Node with a name, or an empty one if it does not exist.
func (n NodeList) Get(name string) workload.Node {
	if at, found := n.find(name); found {
		return n[at]
	}
	return workload.Node{}
}

// Put adds a Node, or replaces the Node with its name.
func (n *NodeList) Put(node workload.Node) {
	at, found := n.find(node.Name)
	if found {
		(*n)[at] = node
		return
	}
	*n = slices.Insert(*n, at, node)
}

// Remove removes a Node, unless a recreated Node with its name was already read.
func (n *NodeList) Remove(name string, uid types.UID) {
	if at, found := n.find(name); found && (*n)[at].UID == uid {
		*n = slices.Delete(*n, at, at+1)
	}
}

// NodeOf returns the facts of a Node.
func NodeOf(n *corev1.Node) workload.Node {
	config, controlPlane := n.Annotations[CurrentConfigAnnotation], OfControlPlane(n.Labels)
	return workload.Node{
		Name: n.Name, UID: n.UID, ProviderID: n.Spec.ProviderID, HostUID: n.Labels[metal3.HostUIDLabel], ControlPlane: controlPlane,
		Config:       config,
		Reconfigured: controlPlane && Reconfigured(config, n.Annotations[DesiredConfigAnnotation]),
	}
}

// controlPlaneLabels are the labels of Nodes that run an etcd member. An arbiter has only its own label.
var controlPlaneLabels = []string{
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master",
	"node-role.kubernetes.io/arbiter",
}

// OfControlPlane reports whether the labels of a Node are those of a host of the control plane.
func OfControlPlane(labels map[string]string) bool {
	return slices.ContainsFunc(controlPlaneLabels, func(label string) bool { _, labeled := labels[label]; return labeled })
}

// Reconfigured reports whether the machine config operator is changing the configuration of a Node.
func Reconfigured(current, desired string) bool {
	return current != "" && desired != "" && current != desired
}
