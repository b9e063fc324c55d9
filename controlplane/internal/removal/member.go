package removal

import (
	"fmt"
	"slices"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// memberOf finds the member that runs on the host of a Machine; nil when there is none. doubt is why that cannot be told. A wrong answer removes the member of another
// host, or wipes one that is still a member: therefore name, address and identity must agree, and no member may be left over that could be that of the Machine.
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
	for _, other := range v.Machines {
		if other.Name != m.Name && other.Node == m.Node {
			return fmt.Sprintf("Machine %s has the same Node, %s: it cannot be told whose etcd member that is", other.Name, m.Node)
		}
	}
	if node := v.Node(m.Node); node != nil && node.ProviderID != "" && m.ProviderID != "" && node.ProviderID != m.ProviderID {
		return fmt.Sprintf("Node %s runs on another host (providerID %s, not %s): it cannot be told whose etcd member that is", m.Node, node.ProviderID, m.ProviderID)
	}
	return ""
}

// runsOn tells whether a member is that of the Machine's host, or that of another.
func (v *view) runsOn(member *facts.EtcdMember, m Machine) (ours bool, doubt string) {
	node := v.nodeAt(member)
	switch {
	case m.Node != "" && member.Name == m.Node:
		if own := v.Node(m.Node); own != nil && node != m.Node {
			return false, fmt.Sprintf("etcd member %s has an address that Node %s does not have: it cannot be told whose it is", nameOf(*member), m.Node)
		}
		return true, ""
	case m.Node != "" && node == m.Node && member.Name == "":
		return true, "" // taken in, and never started
	case m.Node != "" && node == m.Node:
		return false, fmt.Sprintf("etcd member %s has the address of Node %s: it cannot be told whose it is", nameOf(*member), m.Node)
	case member.Name != "" && (v.Node(member.Name) != nil || v.hasMachine(member.Name, m)), member.Name == "" && node != "":
		return false, ""
	}
	return false, fmt.Sprintf("etcd member %s belongs to no Node: it cannot be told whose it was. If its host is gone, remove it as OpenShift documents it", nameOf(*member))
}

// isLeftover tells whether a member is that of a host that was released. One that was never started has no name, only an address, which no other Node may have by now.
func (v *view) isLeftover(member facts.EtcdMember, left Leftover) bool {
	had := func(host string) bool { return slices.Contains(left.Addresses, host) }
	return member.Name == left.Node || member.Name == "" && slices.ContainsFunc(member.Hosts, had) && v.nodeAt(&member) == ""
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

// hasMachine tells whether a Node is that of another Machine than the given.
func (v *view) hasMachine(node string, but Machine) bool {
	return slices.ContainsFunc(v.Machines, func(m Machine) bool { return m.Node == node && m.Name != but.Name })
}
