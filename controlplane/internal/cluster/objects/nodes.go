package objects

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

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// nodes are the Nodes of a cluster. Their status changes every few minutes. It is not read any more once a Node has a
// provider ID, and its kubelet the version of the API servers.
var nodes = Resource{Name: "Nodes", Path: "/api/v1/nodes", Read: readNodes, readChange: readNodeChange}

func readNodes(ctx context.Context, c client.Client) (string, func(*State), error) {
	var found nodeList
	version, err := EachNode(ctx, c, func(node *corev1.Node) { found.Put(nodeOf(node)) })
	if err != nil {
		return "", nil, err
	}
	return version, func(s *State) { s.nodes = slices.Clip(found) }, nil
}

// readNodeChange reads a whole Node until it has a provider ID, which never changes. It also reads it while the version
// of its kubelet differs from that of the API servers.
func readNodeChange(ctx context.Context, cluster Cluster, e Event) (func(*State), error) {
	name, uid := e.Object.Metadata.Name, e.Object.Metadata.UID
	removed := func(s *State) { s.nodes.Remove(name, uid) }
	if e.Type == watch.Deleted {
		return removed, nil
	}
	known := cluster.Node(name)
	annotations := e.Object.Metadata.Annotations
	settled := cluster.Follows(known.KubeletVersion) && known.Config == annotations.CurrentConfig
	if known.UID == uid && known.ProviderID != "" && settled {
		known.HostUID, known.ControlPlane = e.Object.Metadata.Labels[metal3.HostUIDLabel], ofControlPlane(e.Object.Metadata.Labels)
		known.Reconfigured = known.ControlPlane && reconfigured(annotations.CurrentConfig, annotations.DesiredConfig)
		return func(s *State) { s.nodes.Put(known) }, nil
	}
	node := &corev1.Node{}
	err := cluster.Call(func(c client.Client) error { return c.Get(ctx, client.ObjectKey{Name: name}, node) })
	switch {
	case apierrors.IsNotFound(err):
		return removed, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read Node %s of the workload cluster: %w", name, err)
	}
	return func(s *State) { s.nodes.Put(nodeOf(node)) }, nil
}

// nodeList holds Nodes in the order of their names. Most clusters have few Nodes, for which a map would take
// ten times the memory.
type nodeList []workload.Node

func (n nodeList) find(name string) (int, bool) {
	return slices.BinarySearchFunc(n, name, func(node workload.Node, name string) int { return strings.Compare(node.Name, name) })
}

// Get returns the Node with a name, or an empty one if it does not exist.
func (n nodeList) Get(name string) workload.Node {
	if at, found := n.find(name); found {
		return n[at]
	}
	return workload.Node{}
}

// Put adds a Node, or replaces the Node with its name.
func (n *nodeList) Put(node workload.Node) {
	at, found := n.find(node.Name)
	if found {
		(*n)[at] = node
		return
	}
	*n = slices.Insert(*n, at, node)
}

// Remove removes a Node, unless a recreated Node with its name was already read.
func (n *nodeList) Remove(name string, uid types.UID) {
	if at, found := n.find(name); found && (*n)[at].UID == uid {
		*n = slices.Delete(*n, at, at+1)
	}
}

// nodeOf returns the facts of a Node.
func nodeOf(n *corev1.Node) workload.Node {
	config, controlPlane := n.Annotations[CurrentConfigAnnotation], ofControlPlane(n.Labels)
	return workload.Node{
		Name: n.Name, UID: n.UID, ProviderID: n.Spec.ProviderID, HostUID: n.Labels[metal3.HostUIDLabel], ControlPlane: controlPlane,
		Config: config, KubeletVersion: kubeletVersion(n),
		Reconfigured: controlPlane && reconfigured(config, n.Annotations[DesiredConfigAnnotation]),
	}
}

// kubeletVersion returns the version that the kubelet of a Node reports; "" if it is not a version with leading v. Cluster API
// adds the v to a version without, which then is not that of the kubelet.
func kubeletVersion(n *corev1.Node) string {
	version := bound.Identifier(n.Status.NodeInfo.KubeletVersion, LongestVersion)
	if _, err := versions.ParseKubernetes(version); err != nil || !strings.HasPrefix(version, "v") {
		return ""
	}
	return kube.Intern(version)
}

// controlPlaneLabels are the labels of Nodes that run an etcd member. An arbiter has only its own label.
var controlPlaneLabels = []string{
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master",
	"node-role.kubernetes.io/arbiter",
}

// ofControlPlane reports whether the labels of a Node are those of a host of the control plane.
func ofControlPlane(labels map[string]string) bool {
	return slices.ContainsFunc(controlPlaneLabels, func(label string) bool { _, labeled := labels[label]; return labeled })
}

// reconfigured reports whether the machine config operator is changing the configuration of a Node.
func reconfigured(current, desired string) bool {
	return current != "" && desired != "" && current != desired
}
