package facts

import (
	"slices"
	"strings"
	"unicode"

	configv1 "github.com/openshift/api/config/v1"
)

// Etcd is what was read, at one time, of the etcd of a cluster, and of those who change it.
type Etcd struct {
	// Lost tells that it does not serve the API server of the cluster: then nothing else is known.
	Lost bool
	// Topology is that of the control plane.
	Topology configv1.TopologyMode
	// MachineAPI reports whether the cluster's own Machine API runs its control plane: then its etcd operator removes members.
	MachineAPI bool
	// Members are voters and learners. Doubt is why they cannot be relied on; empty: they can.
	Members []EtcdMember
	Doubt   string
	// Alarms are those that are raised. Each is of etcd as a whole: until it is disarmed, members take few changes or none, but answer.
	Alarms []EtcdAlarm
	// Condemned is the message of condition EtcdMembersDegraded of Etcd cluster while that is True: the etcd operator
	// names the unhealthy members there. Empty: the operator reports none.
	Condemned string
	// Operators are those that roll out etcd and what depends on it.
	Operators []ClusterOperator
	// LatestRevision of etcd's static pods is to run on all Nodes; Revisions tells what does.
	LatestRevision int32
	Revisions      []Revision
	// Nodes are those of the control plane.
	Nodes []ControlPlaneNode
}

// EtcdMember is a member of etcd. OpenShift gives it the name of its Node; one that was never started has none.
type EtcdMember struct {
	ID   uint64
	Name string
	// Hosts are those of the addresses by which the other members reach it.
	Hosts           []string
	Learner, Leader bool
	// Problem is, for people, why it is not known to be healthy; empty: it answers, and serves.
	Problem string
}

// EtcdAlarm is one that a member raised, or that was raised about it; Member zero: nobody knows about which.
type EtcdAlarm struct {
	Kind   string
	Member uint64
}

// The kinds of alarms.
const (
	// EtcdNoSpace says that there is no room for more data.
	EtcdNoSpace = "NOSPACE"
	// EtcdCorrupt says that members hold different data.
	EtcdCorrupt = "CORRUPT"
)

// Healthy reports whether the member answered, and serves.
func (m EtcdMember) Healthy() bool { return m.Problem == "" }

// ClusterOperator is what matters of a ClusterOperator.
type ClusterOperator struct {
	Name                             string
	Available, Progressing, Degraded bool
}

// Revision is which revision of etcd's static pod runs on a Node. Target is the one that is being rolled out there; zero: none.
type Revision struct {
	Node            string
	Current, Target int32
}

// ControlPlaneNode is a Node of the control plane.
type ControlPlaneNode struct {
	Node
	// Addresses are the internal ones.
	Addresses []string
	// Configuring tells that it is given another machine configuration.
	Configuring bool
	// Silent reports that its kubelet does not report: the node controller of the cluster has set its conditions to Unknown.
	Silent bool
	// Deleting reports that the Node has a deletionTimestamp: finalizers block the end of its deletion.
	Deleting bool
	// ResourceVersion is the version of the Node that was read: a kubelet that reports again changes it.
	ResourceVersion string
}

// Voters are the members that count for quorum.
func (e *Etcd) Voters() []EtcdMember {
	var voters []EtcdMember
	for _, m := range e.Members {
		if !m.Learner {
			voters = append(voters, m)
		}
	}
	return voters
}

// Silent reports whether a member is not known to be healthy, or none could be asked.
func (e *Etcd) Silent() bool {
	return e.Doubt != "" || slices.ContainsFunc(e.Members, func(m EtcdMember) bool { return !m.Healthy() })
}

// Readable reports whether the members could be read and agree.
func (e *Etcd) Readable() bool {
	return !e.Lost && e.Doubt == "" && e.InPods() && len(e.Members) > 0
}

// Condemns reports whether the etcd operator names a member among the unhealthy ones. That a member does not answer
// here may also be the fault of its kubelet, through which it is asked.
func (e *Etcd) Condemns(member string) bool {
	words := strings.FieldsFunc(e.Condemned, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;:()\"'", r) })
	return slices.Contains(words, member)
}

// InPods reports whether the topology of the control plane is one whose etcd runs in Pods, and is OpenShift's own: with
// two nodes Pacemaker runs it.
func (e *Etcd) InPods() bool {
	return e.Topology == configv1.HighlyAvailableTopologyMode || e.Topology == configv1.HighlyAvailableArbiterMode || e.Topology == configv1.SingleReplicaTopologyMode
}

// Node finds a Node of the control plane; nil when there is none.
func (e *Etcd) Node(name string) *ControlPlaneNode {
	for i := range e.Nodes {
		if e.Nodes[i].Name == name {
			return &e.Nodes[i]
		}
	}
	return nil
}
