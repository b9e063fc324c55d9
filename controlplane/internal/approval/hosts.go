package approval

import (
	"fmt"
	"maps"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// Host is the host of a Machine, as known on the hub.
type Host struct {
	// Machine is the name of the Machine. Node is the name of its Node, or the hostname with which the host will
	// join.
	Machine, Node string
	// notReady is true for a host that must not join yet.
	notReady bool
	// deleting is true if the Machine is being deleted.
	deleting bool
	// addresses are those that the infrastructure provider reports.
	addresses []string
	// discovered are the addresses that the Agent reported before the installation. They are used until the host
	// has a Node, because addresses may change later.
	discovered []string
}

// Nodes are all Nodes of a cluster, by name.
type Nodes map[string]*corev1.Node

// Hosts are all hosts of a cluster. Floating are the addresses of the cluster, which move between hosts.
type Hosts struct {
	All      []Host
	Floating []string
}

// joiningStages are the stages in which an installed host may request certificates.
var joiningStages = sets.New(
	aiv1beta1.HostStageRebooting, aiv1beta1.HostStageConfiguring, aiv1beta1.HostStageJoined, aiv1beta1.HostStageDone,
)

// HostsOf returns the hosts of a cluster, with their present or future Nodes. machines must be complete
// objects. An Agent counts only if the bootstrap provider proved that it runs on the host of its Machine.
func HostsOf(f *facts.Facts, machines []clusterv1.Machine) Hosts {
	hosts := Hosts{Floating: slices.Concat(f.ControlPlane.Spec.Config.APIVIPs, f.ControlPlane.Spec.Config.IngressVIPs)}
	for i := range machines {
		m := &machines[i]
		host := Host{Machine: m.Name, Node: m.Status.NodeRef.Name, deleting: !m.DeletionTimestamp.IsZero()}
		if agent := f.AgentOf(m); agent != nil && agent.DeletionTimestamp.IsZero() {
			host.discovered = assisted.Addresses(agent)
			if host.Node == "" && !host.deleting {
				host.Node, host.notReady = agent.Spec.Hostname, !joiningStages.Has(agent.Status.Progress.CurrentStage)
			}
		}
		for _, address := range m.Status.Addresses {
			host.addresses = append(host.addresses, address.Address)
		}
		hosts.All = append(hosts.All, host)
	}
	return hosts
}

// Have reports whether a host has a Node with the name, or will get it.
func (h Hosts) Have(node string) bool {
	return slices.ContainsFunc(h.All, func(host Host) bool { return host.Node == node })
}

// only returns the one host that has a Node with the name, or an obstacle.
func (h Hosts) only(node string) (*Host, string) {
	var found *Host
	for i := range h.All {
		switch host := &h.All[i]; {
		case host.Node != node:
		case found != nil:
			return nil, fmt.Sprintf("the Machines %s and %s both have a Node of that name", found.Machine, host.Machine)
		default:
			found = host
		}
	}
	switch {
	case found == nil:
		return nil, "no Machine has a Node of that name"
	case found.notReady:
		return nil, fmt.Sprintf("the host of Machine %s is still being installed", found.Machine)
	}
	return found, ""
}

// named reports whether a name belongs to a host.
func (h Hosts) named(host *Host, nodes Nodes, name string) bool {
	node := nodes[host.Node]
	return name == node.Name || slices.Contains(host.addresses, name) ||
		reports(node, name, hostNames...) && h.owner(host, nodes, name) == "" && nodes.reporter(node, name, hostNames...) == ""
}

// addressObstacle returns why an address must not be in a certificate. Addresses that the infrastructure
// provider reports are reliable. Those of a Node come from its kubelet. They count only if no host of another
// Machine has the address, and no other Node reports it. The addresses of a host may differ from those at its
// inspection.
func (h Hosts) addressObstacle(host *Host, nodes Nodes, ip net.IP) string {
	known := func(address string) bool { return ip.Equal(net.ParseIP(address)) }
	node := nodes[host.Node]
	if slices.ContainsFunc(h.Floating, known) {
		return fmt.Sprintf("it contains the address %s, which is the cluster's", ip)
	}
	if slices.ContainsFunc(host.addresses, known) {
		return ""
	}
	if owner := h.owner(host, nodes, ip.String()); owner != "" {
		return fmt.Sprintf("it contains the address %s, which is Machine %s's", ip, owner)
	}
	if !reports(node, ip.String(), hostAddresses...) {
		return fmt.Sprintf("it contains the address %s, which neither Machine nor Node has", ip)
	}
	if other := nodes.reporter(node, ip.String(), hostAddresses...); other != "" {
		return fmt.Sprintf("it contains the address %s, which Node %s reports as well", ip, other)
	}
	return ""
}

// owner returns the Machine of another host that is known to have a name or an address, or "".
func (h Hosts) owner(than *Host, nodes Nodes, of string) string {
	has := func(address string) bool { return equal(address, of) }
	for i := range h.All {
		host := &h.All[i]
		if host == than {
			continue
		}
		if host.Node == of || slices.ContainsFunc(host.addresses, has) || nodes[host.Node] == nil &&
			slices.ContainsFunc(host.discovered, has) {
			return host.Machine
		}
	}
	return ""
}

// reporter returns the first other Node, by name, that reports a name or an address, or "".
func (n Nodes) reporter(than *corev1.Node, of string, types ...corev1.NodeAddressType) string {
	for _, name := range slices.Sorted(maps.Keys(n)) {
		if node := n[name]; node != nil && name != than.Name && (name == of || reports(node, of, types...)) {
			return name
		}
	}
	return ""
}

// hostNames and hostAddresses are the address types of names and of addresses.
var (
	hostNames     = []corev1.NodeAddressType{corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS}
	hostAddresses = []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP}
)

// reports returns whether a Node reports a name or an address with one of the types.
func reports(node *corev1.Node, of string, types ...corev1.NodeAddressType) bool {
	return slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool {
		return slices.Contains(types, a.Type) &&
			equal(a.Address, of)
	})
}

// equal reports whether two names or addresses are equal. IP addresses have several notations.
func equal(a, b string) bool {
	ip := net.ParseIP(a)
	return a == b || ip != nil && ip.Equal(net.ParseIP(b))
}

// same reports whether two lists have the same entries, in any order.
func same[T comparable](a, b []T) bool { return sets.New(a...).Equal(sets.New(b...)) }
