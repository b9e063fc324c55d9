package removal

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// onNode tells a Machine its Node as it is now: it may have become one, or one of another name, after Cluster API looked.
func (v *view) onNode(m Machine) Machine {
	if m.Node != "" && v.Node(m.Node) != nil {
		return m
	}
	if at := slices.IndexFunc(v.Nodes, func(n facts.ControlPlaneNode) bool { return m.runsAs(n.Node) }); at >= 0 {
		m.Node = v.Nodes[at].Name
	}
	return m
}

// memberOf finds the member that runs on the host of a Machine; nil when there is none. doubt is why that cannot be
// told. A wrong answer removes the member of another host, or wipes one that is still a member: therefore name, address
// and identity must agree, and each other member must be proven to be that of another host.
func (v *view) memberOf(m Machine) (own *facts.EtcdMember, doubt string) {
	if doubt := v.doubtNode(m); doubt != "" {
		return nil, doubt
	}
	for i := range v.Members {
		member := &v.Members[i]
		ours, doubt := v.runsOn(member, m)
		switch {
		case doubt != "":
			return nil, doubt
		case ours && own != nil:
			return nil, fmt.Sprintf("Node %s has two etcd members, %x and %x: remove the one that is not its own", m.Node, own.ID, member.ID)
		case ours:
			own = member
		}
	}
	return own, ""
}

// doubtNode is why it cannot be told that the Node is that of the Machine's host.
func (v *view) doubtNode(m Machine) string {
	if m.Node == "" {
		return ""
	}
	for _, other := range v.others(m) {
		if other.Node == m.Node {
			return fmt.Sprintf("Machine %s has the same Node, %s: it cannot be told whose etcd member that is. Delete the Machine whose host no longer exists: if the host still runs, it is wiped. If the Node belongs to neither, delete the Node",
				other.Name, m.Node)
		}
	}
	for _, n := range v.Nodes {
		if n.Name != m.Node && m.runsAs(n.Node) {
			return fmt.Sprintf("Nodes %s and %s both belong to its host. Delete the Node that no longer reports, which wipes nothing", m.Node, n.Name)
		}
	}
	node := v.Node(m.Node)
	switch {
	case node == nil || m.ProviderID == "" || m.runsAs(node.Node):
		return ""
	case node.ProviderID == "":
		return fmt.Sprintf("Node %s has no providerID, so that it may be another host of that name: waiting until the infrastructure provider has set it. If the host of the Machine is gone, "+
			"delete the Node, which wipes nothing: the other host creates it again", m.Node)
	}
	return fmt.Sprintf("Node %s runs on another host (providerID %s, not %s): it cannot be told whose etcd member that is. If that is right, the host of the Machine is gone: see whether etcd has a "+
		"member of it, and take the hook off the Machine", m.Node, short(node.ProviderID), short(m.ProviderID))
}

// runsOn reports whether a member is that of the Machine's host, or that of another.
func (v *view) runsOn(member *facts.EtcdMember, m Machine) (ours bool, doubt string) {
	node := v.nodeAt(member)
	switch {
	case m.Node != "" && member.Name == m.Node && node != m.Node && (node != "" || v.Node(m.Node) != nil):
		return false, fmt.Sprintf("etcd member %s has an address that Node %s does not have: it cannot be told whose it is. If it is left from an earlier host, remove it as OpenShift documents it",
			nameOf(*member), m.Node)
	case m.Node != "" && member.Name == m.Node:
		return true, ""
	case m.Node != "" && node == m.Node && member.Name == "":
		return true, "" // taken in, and never started
	case m.Node != "" && node == m.Node:
		return false, fmt.Sprintf("etcd member %s has the address of Node %s: it cannot be told whose it is. If it is left from an earlier host, remove it as OpenShift documents it", nameOf(*member), m.Node)
	}
	return false, v.doubtElsewhere(member, cmp.Or(member.Name, node), m)
}

// doubtElsewhere is why a member, that of a Node, is not proven to be that of another host than the Machine's.
func (v *view) doubtElsewhere(member *facts.EtcdMember, node string, m Machine) string {
	at := v.Node(node)
	others := v.others(m)
	switch {
	case at == nil && node != "" && slices.ContainsFunc(others, func(other Machine) bool { return other.Node == node }):
		return "" // the other Machine outlives its Node
	case at == nil:
		return fmt.Sprintf("etcd member %s belongs to no Node: it cannot be told whose it was. If its host is gone, remove it as OpenShift documents it", nameOf(*member))
	case m.Node != "" && v.Node(m.Node) != nil:
		return "" // the host of the Machine is another Node
	case slices.ContainsFunc(others, func(other Machine) bool { return other.runsAs(at.Node) }):
		return ""
	}
	return fmt.Sprintf("etcd member %s is that of Node %s, which no other Machine proves to be its own: it may be the host of this one. Waiting until the infrastructure provider has set the "+
		"providerIDs of Node and Machines; if it is the Node of a host without Machine, see that the host of this one is no member of etcd, and take the hook off", nameOf(*member), node)
}

// others are all Machines but one.
func (v *view) others(m Machine) []Machine {
	return slices.DeleteFunc(slices.Concat(v.Machines, v.Others), func(other Machine) bool { return other.Name == m.Name })
}

// nodeAt names the Node that has an address of a member; empty: none has.
func (v *view) nodeAt(member *facts.EtcdMember) string {
	for _, node := range v.Nodes {
		if slices.ContainsFunc(member.Hosts, func(host string) bool { return slices.Contains(node.Addresses, host) }) {
			return node.Name
		}
	}
	return ""
}

// longest is how much of what a cluster says is shown.
const longest = 100

// short shows the beginning of what a cluster says.
func short(said string) string {
	return bound.Shorten(said, longest)
}
