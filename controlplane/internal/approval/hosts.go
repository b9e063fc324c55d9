package approval

import (
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/openshift/assisted-service/models"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// Host is that of a Machine, as the hub knows it.
type Host struct {
	// Machine is the name of the Machine, Node that of its Node, or the one that the host was told to join by.
	Machine, Node string
	// early is true for a host that is not to join yet.
	early bool
	// leaving is true for a host whose Machine is being deleted.
	leaving bool
	// addresses are those that the infrastructure provider tells.
	addresses []string
	// discovered are those that its Agent found before the installation. They count until the host has a Node: after that it may have got others.
	discovered []string
}

// Nodes are all of a cluster, by name.
type Nodes map[string]*corev1.Node

// Hosts are all of a cluster. Floating are addresses of the cluster as a whole, which move between hosts.
type Hosts struct {
	All      []Host
	Floating []string
}

// joiningStages are those in which a host that was installed may ask for certificates.
var joiningStages = sets.New(models.HostStageRebooting, models.HostStageConfiguring, models.HostStageJoined, models.HostStageDone)

// HostsOf finds the hosts of a cluster, and the Nodes that they have or are about to get. The machines are read as a whole; of the Agents those count that the bootstrap
// provider proved to run on the hosts of their Machines.
func HostsOf(f *facts.Facts, machines []clusterv1.Machine) Hosts {
	hosts := Hosts{Floating: slices.Concat(f.ControlPlane.Spec.Config.APIVIPs, f.ControlPlane.Spec.Config.IngressVIPs)}
	for i := range machines {
		m := &machines[i]
		host := Host{Machine: m.Name, Node: m.Status.NodeRef.Name, leaving: !m.DeletionTimestamp.IsZero()}
		if agent := f.AgentOf(m); agent != nil && agent.DeletionTimestamp.IsZero() {
			host.discovered = assisted.Addresses(agent)
			if host.Node == "" && !host.leaving {
				host.Node, host.early = agent.Spec.Hostname, !joiningStages.Has(agent.Status.Progress.CurrentStage)
			}
		}
		for _, address := range m.Status.Addresses {
			host.addresses = append(host.addresses, address.Address)
		}
		hosts.All = append(hosts.All, host)
	}
	return hosts
}

// Have reports whether one of the hosts has a Node of the name, or is to get it.
func (h Hosts) Have(node string) bool {
	return slices.ContainsFunc(h.All, func(host Host) bool { return host.Node == node })
}

// only is the one host that has a Node of the name.
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
	case found.early:
		return nil, fmt.Sprintf("the host of Machine %s is still being installed", found.Machine)
	}
	return found, ""
}

// named reports whether a name is one of a host.
func (h Hosts) named(host *Host, nodes Nodes, name string) bool {
	node := nodes[host.Node]
	return name == node.Name || slices.Contains(host.addresses, name) ||
		reports(node, name, hostNames...) && h.owner(host, nodes, name) == "" && nodes.reporter(node, name, hostNames...) == ""
}

// addressObstacle says what is wrong about an address. What the infrastructure provider tells of a host is sure. What a Node tells comes from its kubelet, and counts as long as
// nobody else is known to have it: no host of another Machine, and no Node that reports it as well. Hosts may get other addresses, and others than at their inspection.
func (h Hosts) addressObstacle(host *Host, nodes Nodes, ip net.IP) string {
	known := func(address string) bool { return ip.Equal(net.ParseIP(address)) }
	node := nodes[host.Node]
	if slices.ContainsFunc(h.Floating, known) {
		return fmt.Sprintf("it is for the address %s, which is the cluster's", ip)
	}
	if slices.ContainsFunc(host.addresses, known) {
		return ""
	}
	if owner := h.owner(host, nodes, ip.String()); owner != "" {
		return fmt.Sprintf("it is for the address %s, which is Machine %s's", ip, owner)
	}
	if !reports(node, ip.String(), hostAddresses...) {
		return fmt.Sprintf("it is for the address %s, which neither Machine nor Node has", ip)
	}
	if other := nodes.reporter(node, ip.String(), hostAddresses...); other != "" {
		return fmt.Sprintf("it is for the address %s, which Node %s reports as well", ip, other)
	}
	return ""
}

// owner is the Machine of another host that is known to have a name or an address; empty: none.
func (h Hosts) owner(than *Host, nodes Nodes, of string) string {
	has := func(address string) bool { return alike(address, of) }
	for i := range h.All {
		host := &h.All[i]
		if host == than {
			continue
		}
		if host.Node == of || slices.ContainsFunc(host.addresses, has) || nodes[host.Node] == nil && slices.ContainsFunc(host.discovered, has) {
			return host.Machine
		}
	}
	return ""
}

// reporter names another Node that reports a name or an address; empty: none. Of several it is the first by name.
func (n Nodes) reporter(than *corev1.Node, of string, types ...corev1.NodeAddressType) string {
	for _, name := range slices.Sorted(maps.Keys(n)) {
		if node := n[name]; node != nil && name != than.Name && (name == of || reports(node, of, types...)) {
			return name
		}
	}
	return ""
}

// hostNames and hostAddresses are the types of what a Node reports as its names and its addresses.
var (
	hostNames     = []corev1.NodeAddressType{corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS}
	hostAddresses = []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP}
)

// reports returns true if a Node has a name or an address, as one of some types.
func reports(node *corev1.Node, of string, types ...corev1.NodeAddressType) bool {
	return slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool { return slices.Contains(types, a.Type) && alike(a.Address, of) })
}

// alike reports whether two names or addresses are the same: an address may be written in several ways.
func alike(a, b string) bool {
	ip := net.ParseIP(a)
	return a == b || ip != nil && ip.Equal(net.ParseIP(b))
}

// same reports whether two lists have the same entries, in whatever order.
func same[T comparable](a, b []T) bool { return sets.New(a...).Equal(sets.New(b...)) }
