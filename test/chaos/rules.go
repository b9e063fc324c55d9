package main

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// The rules, which hold with all faults.
const (
	provenRule   = "no approval without proof"
	claimRule    = "no Agent is approved that another object claims"
	lossRule     = "no host is installed or wiped without a request"
	deletionRule = "nothing is deleted without a request"
	loadRule     = "nothing is requested over and over"
	twiceRule    = "nothing is created twice"
	secretRule   = "no secret is disclosed"
	// certificateRule is about the forged requests of acts, which no joining host sends.
	certificateRule = "no certificate for a client that is not a host of the cluster, or for a name that is not its own"
	// memberRule is about voters of etcd: a voter is removed only for its own Machine that is being deleted.
	memberRule    = "no member removed for a foreign object"
	conditionRule = "every wait has a condition with a message"
	panicRule     = "nothing panics, and no data race is found"
	endRule       = "everything ends when the faults stop"
	missRule      = "every act and fault happens"
)

// slack is how far the events of different kinds of objects may be out of order.
const slack = 10 * time.Second

// stay is the time in which a host was assigned to a Machine. A zero end: it still is.
type stay struct {
	machine  types.NamespacedName
	from, to time.Time
}

// approval is the approval of an Agent.
type approval struct {
	agent, machine types.NamespacedName
	at             time.Time
}

// proofMissing returns why an Agent must not have been approved: its host was not assigned to the Machine whose
// image it booted. stays are the assignments of the host. It returns "" if the approval is right.
func proofMissing(a approval, known bool, stays []stay) string {
	if !known {
		return fmt.Sprintf("Agent %s was approved as the host of Machine %s, and runs on a server without a BareMetalHost", a.agent, a.machine)
	}
	if slices.ContainsFunc(stays, func(s stay) bool {
		return s.machine == a.machine && !a.at.Add(slack).Before(s.from) && (s.to.IsZero() || !a.at.After(s.to.Add(slack)))
	}) {
		return ""
	}
	return fmt.Sprintf("Agent %s was approved as the host of Machine %s, to which its BareMetalHost was not assigned", a.agent, a.machine)
}

// incompleteConditions returns the conditions of an object that lack a reason or a message.
func incompleteConditions(kind string, key types.NamespacedName, conditions []metav1.Condition) []string {
	var findings []string
	for _, c := range lab.Unmet(conditions) {
		if c.Reason == "" || c.Message == "" {
			findings = append(findings, fmt.Sprintf("%s %s: %s is %s, reason %q, message %q", kind, key, c.Type, c.Status, c.Reason, c.Message))
		}
	}
	return findings
}

// summaries are the conditions that summarize the state of an object.
var summaries = map[string]string{"OpenshiftAssistedConfig": "Ready", "OpenshiftAssistedControlPlane": "Available"}

// grace is how long an object may lack its summary: its manager may be down.
const grace = 3 * time.Minute

// isSummed reports whether an object has its summary.
func isSummed(kind string, conditions []metav1.Condition) bool {
	return meta.FindStatusCondition(conditions, summaries[kind]) != nil
}

// life is the life of a Machine. A zero end: it still exists.
type life struct {
	name string
	// master: the Machine is, or was, in the control plane.
	master   bool
	from, to time.Time
	// requested: the plan requested the deletion. deleting: the Machine was deleted.
	requested, deleting bool
	// node is the name of its Node, and joined the time when it was first seen.
	node   string
	joined time.Time
}

// lateness is how much later than the deletion of a Machine its objects may be deleted.
const lateness = 2 * time.Second

// covers reports whether a Machine of a name existed at a time: names are reused.
func (l *life) covers(name string, at time.Time) bool {
	return l.name == name && !at.Before(l.from) && (l.to.IsZero() || !at.After(l.to.Add(lateness)))
}

// census is the history of a namespace, which has one cluster: names and UIDs by kind.
type census struct {
	// replicas is the largest desired number of control-plane Machines.
	replicas int
	// machines are all Machines that ever existed.
	machines map[types.UID]*life
	// scaledDownWorkers and scaledDownMasters are how many workers and masters may be deleted without a name. excused are the
	// numbers of objects of a kind that a foreign client deleted.
	scaledDownWorkers, scaledDownMasters int
	excused                              map[string]int
	// retried: the cluster is being installed again. leaving: it was deleted.
	retried, leaving bool
	// userKubeconfigs are the etcd members that were lost with an abandoned installation.
	lostMembers []lab.WipedMember
	// infraEnvs are the names of the InfraEnvs of Agents, which are those of Machines.
	infraEnvs map[string]string
	// abandoned: the cluster was deleted during its installation. forgiven are the names of objects without a
	// Machine of a cluster that was applied again afterwards.
	abandoned bool
	forgiven  map[string]bool
	// made are the UIDs of other kinds, with their names.
	made map[string]map[types.UID]string
	// awaitDeletion is the number of deleted objects of a kind.
	gone map[string]int
	// consumers are the hosts that are assigned to an infra machine now.
	consumers map[types.NamespacedName][]string
}

// record records an event of a Machine.
func (c *census) record(m *clusterv1.Machine, gone bool) *life {
	l := c.machines[m.UID]
	if l == nil {
		l = &life{name: m.Name, from: m.CreationTimestamp.Time}
		c.machines[m.UID] = l
	}
	if _, master := m.Labels[clusterv1.MachineControlPlaneLabel]; master {
		l.master = true
	}
	if node := m.Status.NodeRef.Name; node != "" && l.node == "" {
		l.node, l.joined = node, time.Now()
	}
	l.deleting = l.deleting || !m.DeletionTimestamp.IsZero()
	if gone {
		l.to = time.Now()
	}
	return l
}

// removal is the removal of a voter from etcd.
type removal struct {
	node string
	at   time.Time
}

// removedBetween returns the voters of Nodes that are in the former list of members, and not in the next.
func removedBetween(before, now []lab.EtcdMember, at time.Time) []removal {
	var found []removal
	for _, m := range before {
		if m.Voter && m.Name != "" && !slices.ContainsFunc(now, func(other lab.EtcdMember) bool { return other.ID == m.ID }) {
			found = append(found, removal{node: m.Name, at: at})
		}
	}
	return found
}

// wrongRemoval returns a message if a voter was removed though the Machine of its Node stays; otherwise "". The
// member of the bootstrap host has no Machine.
func (c *census) wrongRemoval(namespace string, removed removal) string {
	if c.leaving || c.retried {
		return ""
	}
	for _, l := range c.machines {
		if l.node == removed.node && l.joined.Before(removed.at) && l.to.IsZero() && !l.deleting {
			return fmt.Sprintf("%s: the member of Node %s was removed from etcd at %s, and Machine %s is not being deleted",
				namespace, removed.node, removed.at.Format(time.TimeOnly), l.name)
		}
	}
	return ""
}

// replaceAll records that all Machines are to be deleted, and that the cluster is registered again.
func (c *census) replaceAll() {
	for _, l := range c.machines {
		l.requested = true
	}
	for _, kind := range single {
		c.excused[kind]++
	}
}

// lives returns the records of the Machines that had a name at a time.
func (c *census) lives(name string, at time.Time) []*life {
	var found []*life
	for _, l := range c.machines {
		if l.covers(name, at) {
			found = append(found, l)
		}
	}
	return found
}

// everExisted reports whether a Machine of a name ever existed.
func (c *census) everExisted(name string) bool {
	for _, l := range c.machines {
		if l.name == name {
			return true
		}
	}
	return false
}

// count counts the Machines for which a condition holds.
func (c *census) count(hold func(*life) bool) int {
	n := 0
	for _, l := range c.machines {
		if hold(l) {
			n++
		}
	}
	return n
}

func isMaster(l *life) bool            { return l.master }
func isDeletionRequested(l *life) bool { return l.requested }

// single are the kinds of which a cluster has one object.
var single = []string{"ClusterDeployment", "AgentClusterInstall"}

// extraObjects returns messages about objects that were created more often than allowed. The masters of a cluster
// that is being installed again are counted after the installation, when the replaced ones are known.
func (c *census) extraObjects(namespace string) []string {
	var findings []string
	masters, replaced := c.count(isMaster), c.count(func(l *life) bool { return l.master && l.requested })
	if c.replicas > 0 && !c.retried && masters > c.replicas+replaced {
		findings = append(findings, fmt.Sprintf("%s: %d control-plane Machines were created for %d replicas, of which %d were replaced",
			namespace, masters, c.replicas, replaced))
	}
	for _, kind := range single {
		if n := len(c.made[kind]); n > 1+c.excused[kind] {
			findings = append(findings, fmt.Sprintf("%s: %d objects of kind %s were created, of which foreign clients deleted %d",
				namespace, n, kind, c.excused[kind]))
		}
	}
	if n := len(c.made["InfraEnv"]); n > len(c.machines)+c.excused["InfraEnv"] {
		findings = append(findings, fmt.Sprintf("%s: %d InfraEnvs were created for %d Machines, of which foreign clients deleted %d",
			namespace, n, len(c.machines), c.excused["InfraEnv"]))
	}
	for consumer, given := range c.consumers {
		if len(given) > 1 {
			slices.Sort(given)
			findings = append(findings, fmt.Sprintf("%s has %d hosts: %v", consumer, len(given), given))
		}
	}
	return findings
}

// named are the kinds whose objects have the name of their Machine.
var named = []string{"OpenshiftAssistedConfig", "Metal3Machine"}

// orphans returns messages about objects without a Machine, as after an attempt under another name. They are
// known at the end only: a Machine is created last.
func (c *census) orphans(namespace string) []string {
	var findings []string
	for _, kind := range named {
		for _, name := range c.made[kind] {
			if !c.abandoned && !c.forgiven[name] && !c.everExisted(name) {
				findings = append(findings, fmt.Sprintf("%s: %s %s was created without a Machine of that name", namespace, kind, name))
			}
		}
	}
	return findings
}
