package workload

import (
	"slices"
	"strings"
	"unicode"

	configv1 "github.com/openshift/api/config/v1"
)

// Etcd is the state of the etcd of a cluster and of the operators that change it, read at one time.
type Etcd struct {
	// Lost is true if etcd does not serve the API server of the cluster. Then nothing else is known.
	Lost bool
	// Topology is the topology of the control plane.
	Topology configv1.TopologyMode
	// MachineAPI is true if the cluster's own Machine API runs its control plane. Then the cluster's etcd
	// operator removes members.
	MachineAPI bool
	// Members are voters and learners. Doubt is why they are unreliable; "" if they are reliable.
	Members []EtcdMember
	Doubt   string
	// Alarms are the raised alarms. Each concerns etcd as a whole. Until it is disarmed, members answer, but
	// accept few changes or none.
	Alarms []EtcdAlarm
	// Condemned is the message of condition EtcdMembersDegraded of Etcd cluster while that is True: the etcd
	// operator names the unhealthy members there. "" if the operator reports none.
	Condemned string
	// Operators are the ClusterOperators that roll out etcd and its dependents.
	Operators []ClusterOperator
	// LatestRevision is the desired revision of etcd's static Pods on all Nodes. Revisions are the revisions
	// that run.
	LatestRevision int32
	Revisions      []Revision
	// Nodes are the Nodes of the control plane.
	Nodes []ControlPlaneNode
}

// EtcdMember is a member of etcd. OpenShift names a member after its Node. A member that was never started
// has no name.
type EtcdMember struct {
	ID   uint64
	Name string
	// Hosts are the hosts in the addresses by which the other members reach this member.
	Hosts           []string
	Learner, Leader bool
	// Problem is why the member is not known to be healthy, for messages; "" if it answers and serves.
	Problem string
}

// EtcdAlarm is an alarm that a member raised, or that was raised about a member. Member is zero if etcd does
// not name it.
type EtcdAlarm struct {
	Kind   string
	Member uint64
}

// The kinds of alarms.
const (
	// EtcdNoSpace means that the space for data is exhausted.
	EtcdNoSpace = "NOSPACE"
	// EtcdCorrupt means that members hold different data.
	EtcdCorrupt = "CORRUPT"
)

// Healthy reports whether the member answered and serves.
func (m EtcdMember) Healthy() bool { return m.Problem == "" }

// ClusterOperator holds the relevant data of a ClusterOperator.
type ClusterOperator struct {
	Name                             string
	Available, Progressing, Degraded bool
}

// Revision is the revision of etcd's static Pod that runs on a Node. Target is the revision that is being
// rolled out there; zero if none is.
type Revision struct {
	Node            string
	Current, Target int32
}

// ControlPlaneNode is a Node of the control plane.
type ControlPlaneNode struct {
	Node
	// Addresses are the internal addresses.
	Addresses []string
	// Configuring is true while the Node gets another machine configuration.
	Configuring bool
	// Silent is true if the kubelet does not report: the node controller of the cluster has set the Node's
	// conditions to Unknown.
	Silent bool
	// Deleting is true if the Node has a deletionTimestamp: finalizers block the end of its deletion.
	Deleting bool
	// ResourceVersion is the version of the Node that was read: a kubelet that reports again changes it.
	ResourceVersion string
}

// Voters returns the members that count for quorum.
func (e *Etcd) Voters() []EtcdMember {
	var voters []EtcdMember
	for _, m := range e.Members {
		if !m.Learner {
			voters = append(voters, m)
		}
	}
	return voters
}

// Silent reports whether a member is not known to be healthy, or no member could be queried.
func (e *Etcd) Silent() bool {
	return e.Doubt != "" || slices.ContainsFunc(e.Members, func(m EtcdMember) bool { return !m.Healthy() })
}

// Readable reports whether the members could be read and agree.
func (e *Etcd) Readable() bool {
	return !e.Lost && e.Doubt == "" && e.InPods() && len(e.Members) > 0
}

// Condemns reports whether the etcd operator names a member among the unhealthy ones. A member that does not
// answer this provider may be healthy: the connection passes through the member's kubelet.
func (e *Etcd) Condemns(member string) bool {
	words := strings.FieldsFunc(e.Condemned, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;:()\"'", r) })
	return slices.Contains(words, member)
}

// InPods reports whether OpenShift runs etcd in Pods. In a cluster of two nodes with fencing, Pacemaker runs
// etcd.
func (e *Etcd) InPods() bool {
	return e.Topology == configv1.HighlyAvailableTopologyMode || e.Topology == configv1.HighlyAvailableArbiterMode ||
		e.Topology == configv1.SingleReplicaTopologyMode
}

// Node returns a Node of the control plane; nil if it does not exist.
func (e *Etcd) Node(name string) *ControlPlaneNode {
	for i := range e.Nodes {
		if e.Nodes[i].Name == name {
			return &e.Nodes[i]
		}
	}
	return nil
}

// NodeAt returns the Node that has an address of a member; "" if there is none.
func (e *Etcd) NodeAt(member *EtcdMember) string {
	for _, node := range e.Nodes {
		if slices.ContainsFunc(member.Hosts, func(host string) bool { return slices.Contains(node.Addresses, host) }) {
			return node.Name
		}
	}
	return ""
}
