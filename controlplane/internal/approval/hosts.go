package approval

import (
	"fmt"
	"net"
	"slices"

	"github.com/openshift/assisted-service/models"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
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
}

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
		if host.Node == "" && !host.leaving {
			host.Node, host.early = joiningAs(f, m)
		}
		for _, address := range m.Status.Addresses {
			host.addresses = append(host.addresses, address.Address)
		}
		hosts.All = append(hosts.All, host)
	}
	return hosts
}

// joiningAs is the name that the host of a Machine was told, and whether it is too early for it to join: it has not booted yet what is installed on it.
func joiningAs(f *facts.Facts, m *clusterv1.Machine) (name string, early bool) {
	agent := f.AgentOf(m)
	if agent == nil || !agent.DeletionTimestamp.IsZero() {
		return "", false
	}
	return agent.Spec.Hostname, !joiningStages.Has(agent.Status.Progress.CurrentStage)
}

// Have tells whether one of the hosts has a Node of the name, or is to get it.
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

// named tells whether a name is one of a host.
func (h Hosts) named(host *Host, node *corev1.Node, name string) bool {
	return name == node.Name || slices.Contains(host.addresses, name) ||
		reports(node, name, corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS) && h.owner(name) == ""
}

// addressObstacle says what is wrong about an address. What the infrastructure provider tells of a host is sure. What a Node tells comes from its kubelet, and counts as long as
// nobody else is known to have it: hosts may get other addresses, and others than at their inspection.
func (h Hosts) addressObstacle(host *Host, node *corev1.Node, ip net.IP) string {
	known := func(address string) bool { return ip.Equal(net.ParseIP(address)) }
	if slices.ContainsFunc(h.Floating, known) {
		return fmt.Sprintf("it is for the address %s, which is the cluster's", ip)
	}
	if slices.ContainsFunc(host.addresses, known) {
		return ""
	}
	if owner := h.owner(ip.String()); owner != "" {
		return fmt.Sprintf("it is for the address %s, which is Machine %s's", ip, owner)
	}
	if !reports(node, ip.String(), corev1.NodeInternalIP, corev1.NodeExternalIP) {
		return fmt.Sprintf("it is for the address %s, which neither Machine nor Node has", ip)
	}
	return ""
}

// owner is the Machine of a host that is known to have a name or an address; empty: none.
func (h Hosts) owner(of string) string {
	for _, host := range h.All {
		if host.Node == of || slices.ContainsFunc(host.addresses, func(address string) bool { return alike(address, of) }) {
			return host.Machine
		}
	}
	return ""
}

// reports tells whether a Node reports a name or an address, as one of some types.
func reports(node *corev1.Node, of string, types ...corev1.NodeAddressType) bool {
	return slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool { return slices.Contains(types, a.Type) && alike(a.Address, of) })
}

// alike tells whether two names or addresses are the same: an address may be written in several ways.
func alike(a, b string) bool {
	ip := net.ParseIP(a)
	return a == b || ip != nil && ip.Equal(net.ParseIP(b))
}

// same tells whether two lists have the same entries, in whatever order.
func same[T comparable](a, b []T) bool { return sets.New(a...).Equal(sets.New(b...)) }
