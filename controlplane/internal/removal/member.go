package removal

import (
	"cmp"
	"fmt"
	"slices"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// onNode returns a Machine with its current Node: it may have registered a Node, or one with another name,
// since Cluster API set the nodeRef.
func (v *view) onNode(m quorum.Machine) quorum.Machine {
	if m.Node != "" && v.Node(m.Node) != nil {
		return m
	}
	if at := slices.IndexFunc(v.Nodes, func(n workload.ControlPlaneNode) bool { return m.RunsAs(n.Node) }); at >= 0 {
		m.Node = v.Nodes[at].Name
	}
	return m
}

// memberOf returns the member on the host of a Machine; nil if there is none. doubt is why the member is
// unknown. A wrong answer removes the member of another host, or wipes a host that is still a member.
// Therefore name, address and identity must agree, and each other member must be proven to belong to another
// host.
func (v *view) memberOf(m quorum.Machine) (own *workload.EtcdMember, doubt string) {
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

// doubtNode returns why it is unknown whether the Node belongs to the Machine's host.
func (v *view) doubtNode(m quorum.Machine) string {
	if m.Node == "" {
		return ""
	}
	for _, other := range v.others(m) {
		if other.Node == m.Node {
			return fmt.Sprintf(
				"Machine %s has the same Node, %s: it is unknown whose etcd member that is. Delete the Machine whose host no longer exists: "+
					"if the host still runs, it is wiped. If the Node belongs to neither, delete the Node",
				other.Name,
				m.Node,
			)
		}
	}
	for _, n := range v.Nodes {
		if n.Name != m.Node && m.RunsAs(n.Node) {
			return fmt.Sprintf(
				"Nodes %s and %s both belong to its host. Delete the Node that no longer reports, which wipes nothing",
				m.Node,
				n.Name,
			)
		}
	}
	node := v.Node(m.Node)
	switch {
	case node == nil || m.ProviderID == "" || m.RunsAs(node.Node):
		return ""
	case node.ProviderID == "":
		return fmt.Sprintf(
			"Node %s has no providerID, so that it may be another host of that name: waiting until the infrastructure provider has set it. If "+
				"the host of the Machine no longer exists, "+
				"delete the Node, which wipes nothing: the other host creates it again",
			m.Node,
		)
	}
	return fmt.Sprintf(
		"Node %s runs on another host (providerID %s, not %s): it is unknown whose etcd member that is. If that is right, the host of the "+
			"Machine no longer exists: check whether etcd has a member of it, and remove the annotation %s from the Machine",
		m.Node,
		quorum.Shorten(node.ProviderID),
		quorum.Shorten(m.ProviderID),
		controlplanev1.EtcdMemberHookAnnotation,
	)
}

// runsOn reports whether a member belongs to the Machine's host.
func (v *view) runsOn(member *workload.EtcdMember, m quorum.Machine) (ours bool, doubt string) {
	node := v.NodeAt(member)
	switch {
	case m.Node != "" && member.Name == m.Node && node != m.Node && (node != "" || v.Node(m.Node) != nil):
		return false, fmt.Sprintf(
			"etcd member %s has an address that Node %s does not have: it is unknown whose it is. If it is left from an earlier host, "+
				"remove it as OpenShift documents it",
			quorum.NameOf(*member),
			m.Node,
		)
	case m.Node != "" && member.Name == m.Node:
		return true, ""
	case m.Node != "" && node == m.Node && member.Name == "":
		return true, "" // added, and never started
	case m.Node != "" && node == m.Node:
		return false, fmt.Sprintf(
			"etcd member %s has the address of Node %s: it is unknown whose it is. If it is left from an earlier host, remove it as "+
				"OpenShift documents it",
			quorum.NameOf(*member),
			m.Node,
		)
	}
	return false, v.doubtElsewhere(member, cmp.Or(member.Name, node), m)
}

// doubtElsewhere returns why a member with a Node is not proven to belong to another host than the Machine's.
func (v *view) doubtElsewhere(member *workload.EtcdMember, node string, m quorum.Machine) string {
	at := v.Node(node)
	others := v.others(m)
	switch {
	case at == nil && node != "" && slices.ContainsFunc(others, func(other quorum.Machine) bool { return other.Node == node }):
		return "" // the other Machine outlives its Node
	case at == nil:
		return fmt.Sprintf(
			"etcd member %s belongs to no Node: it is unknown whose it was. If its host no longer exists, remove it as OpenShift documents it",
			quorum.NameOf(*member),
		)
	case m.Node != "" && v.Node(m.Node) != nil:
		return "" // the host of the Machine is another Node
	case slices.ContainsFunc(others, func(other quorum.Machine) bool { return other.RunsAs(at.Node) }):
		return ""
	}
	return fmt.Sprintf(
		"etcd member %s is that of Node %s, which no other Machine proves to be its own: it may be the host of this one. Waiting until the "+
			"infrastructure provider has set the providerIDs of Node and Machines. If it is the Node of a host without Machine, check that the "+
			"host of this one is no member of etcd, and remove the annotation %s from its Machine",
		quorum.NameOf(*member),
		node,
		controlplanev1.EtcdMemberHookAnnotation,
	)
}

// others returns all Machines except one.
func (v *view) others(m quorum.Machine) []quorum.Machine {
	return slices.DeleteFunc(slices.Concat(v.Machines, v.Others), func(other quorum.Machine) bool { return other.Name == m.Name })
}
