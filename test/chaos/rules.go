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

// The rules that hold whatever happens.
const (
	provenRule   = "no approval without proof"
	claimRule    = "no Agent is approved that another object claims"
	lossRule     = "no host is installed or wiped without being asked"
	deletionRule = "nothing is deleted without being asked"
	loadRule     = "nothing is asked for over and over"
	twiceRule    = "nothing is made twice"
	secretRule   = "no secret is told"
	// certificateRule is about requests of acts, which nobody who joins a cluster makes.
	certificateRule = "nobody gets a certificate who is no host of the cluster, or for what is not its own"
	// memberRule is about voters of etcd: one is removed for its own Machine alone, which is being deleted.
	memberRule    = "no member removed for a foreign object"
	conditionRule = "every wait has a condition with a message"
	panicRule     = "nothing panics, and no data race is found"
	endRule       = "everything comes to its end when the faults stop"
	missRule      = "everything that is to go wrong does"
)

// slack is by how much what was seen of different kinds of objects may be out of step.
const slack = 10 * time.Second

// stay is the time in which a host was given to a Machine. An end of zero is still to come.
type stay struct {
	machine  types.NamespacedName
	from, to time.Time
}

// approval is what was seen of an Agent that is approved.
type approval struct {
	agent, machine types.NamespacedName
	at             time.Time
}

// unproven tells why an Agent may not have been approved: its host, which stays are given of, was not that of the
// Machine whose image it booted. It is empty when all is well.
func unproven(a approval, known bool, stays []stay) string {
	if !known {
		return fmt.Sprintf("Agent %s was approved as the host of Machine %s, and runs on a server that is no BareMetalHost's", a.agent, a.machine)
	}
	if slices.ContainsFunc(stays, func(s stay) bool {
		return s.machine == a.machine && !a.at.Add(slack).Before(s.from) && (s.to.IsZero() || !a.at.After(s.to.Add(slack)))
	}) {
		return ""
	}
	return fmt.Sprintf("Agent %s was approved as the host of Machine %s, which its BareMetalHost was not given to", a.agent, a.machine)
}

// mute names what an object does not tell of what it waits for: conditions without a reason or a message, and the summary that is missing.
func mute(kind string, key types.NamespacedName, conditions []metav1.Condition) []string {
	var told []string
	for _, c := range lab.Unmet(conditions) {
		if c.Reason == "" || c.Message == "" {
			told = append(told, fmt.Sprintf("%s %s: %s is %s, reason %q, message %q", kind, key, c.Type, c.Status, c.Reason, c.Message))
		}
	}
	return told
}

// summaries are the conditions that say how an object is.
var summaries = map[string]string{"OpenshiftAssistedConfig": "Ready", "OpenshiftAssistedControlPlane": "Available"}

// grace is how long an object may have no summary: its manager may be down.
const grace = 3 * time.Minute

// isSummed reports whether an object has its summary.
func isSummed(kind string, conditions []metav1.Condition) bool {
	return meta.FindStatusCondition(conditions, summaries[kind]) != nil
}

// life is that of a Machine. An end of zero is still to come.
type life struct {
	name string
	// master: it is, or was, one of the control plane.
	master   bool
	from, to time.Time
	// asked: it was deleted on purpose. deleting: somebody deleted it.
	asked, deleting bool
	// node is the name of its Node, and joined when that was seen first.
	node   string
	joined time.Time
}

// lateness is by how much what is done for the deletion of a Machine may be later than it was seen to be gone.
const lateness = 2 * time.Second

// covers reports whether a Machine of a name was there at a time: names come back.
func (l *life) covers(name string, at time.Time) bool {
	return l.name == name && !at.Before(l.from) && (l.to.IsZero() || !at.After(l.to.Add(lateness)))
}

// census is what was ever seen of a namespace, which has one cluster: names and UIDs by kind.
type census struct {
	// replicas is how many Machines the control plane is to have.
	replicas int
	// machines are all Machines that there ever were.
	machines map[types.UID]*life
	// fewer and fewerMasters is how many workers and masters are to go whichever they are. excused are the objects of a
	// kind that somebody deleted who may not.
	fewer, fewerMasters int
	excused             map[string]int
	// retried: the cluster is being installed again. leaving: it was deleted.
	retried, leaving bool
	// given are the members of etcd that were given up with an installation.
	given []lab.WipedMember
	// infraEnvs are the names of the InfraEnvs that Agents come from, which are those of Machines.
	infraEnvs map[string]string
	// abandoned: the cluster was deleted while it was made. forgiven are the names of what was made for no Machine of
	// one that came back afterwards.
	abandoned bool
	forgiven  map[string]bool
	// made are the UIDs of other kinds, with their names.
	made map[string]map[types.UID]string
	// gone is how many of a kind are there no more.
	gone map[string]int
	// consumers are the hosts that are given to an infra machine now.
	consumers map[types.NamespacedName][]string
}

// see takes in what became of a Machine.
func (c *census) see(m *clusterv1.Machine, gone bool) *life {
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

// removal is a voter of etcd that was seen, and is no member any more.
type removal struct {
	node string
	at   time.Time
}

// removedBetween returns the voters of Nodes that are in one list of members, and in the next no more.
func removedBetween(before, now []lab.EtcdMember, at time.Time) []removal {
	var found []removal
	for _, m := range before {
		if m.Voter && m.Name != "" && !slices.ContainsFunc(now, func(other lab.EtcdMember) bool { return other.ID == m.ID }) {
			found = append(found, removal{node: m.Name, at: at})
		}
	}
	return found
}

// misplaced reports that a voter was removed though the Machine of its Node stays; it is empty when all is well. The
// member of the bootstrap is no Machine's.
func (c *census) misplaced(namespace string, removed removal) string {
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

// replaceAll says that all Machines are to go, and that the cluster is registered once more.
func (c *census) replaceAll() {
	for _, l := range c.machines {
		l.asked = true
	}
	for _, kind := range single {
		c.excused[kind]++
	}
}

// lives are those of the Machines that had a name at a time.
func (c *census) lives(name string, at time.Time) []*life {
	var found []*life
	for _, l := range c.machines {
		if l.covers(name, at) {
			found = append(found, l)
		}
	}
	return found
}

// ever reports whether there was a Machine of a name at any time.
func (c *census) ever(name string) bool {
	for _, l := range c.machines {
		if l.name == name {
			return true
		}
	}
	return false
}

// count counts the Machines for which something holds.
func (c *census) count(hold func(*life) bool) int {
	n := 0
	for _, l := range c.machines {
		if hold(l) {
			n++
		}
	}
	return n
}

func isMaster(l *life) bool { return l.master }
func wasAsked(l *life) bool { return l.asked }

// single are the kinds of which a cluster has one.
var single = []string{"ClusterDeployment", "AgentClusterInstall"}

// doubles names what there was more of than there may be. The masters of a cluster that is being installed again are
// counted when it is installed: which of them were to go is known then.
func (c *census) doubles(namespace string) []string {
	var told []string
	masters, replaced := c.count(isMaster), c.count(func(l *life) bool { return l.master && l.asked })
	if c.replicas > 0 && !c.retried && masters > c.replicas+replaced {
		told = append(told, fmt.Sprintf("%s: %d control-plane Machines were made for %d replicas, of which %d were replaced",
			namespace, masters, c.replicas, replaced))
	}
	for _, kind := range single {
		if n := len(c.made[kind]); n > 1+c.excused[kind] {
			told = append(told, fmt.Sprintf("%s: %d objects of kind %s were made, of which %d were deleted by somebody else",
				namespace, n, kind, c.excused[kind]))
		}
	}
	if n := len(c.made["InfraEnv"]); n > len(c.machines)+c.excused["InfraEnv"] {
		told = append(told, fmt.Sprintf("%s: %d InfraEnvs were made for %d Machines, of which %d were deleted by somebody else",
			namespace, n, len(c.machines), c.excused["InfraEnv"]))
	}
	for consumer, given := range c.consumers {
		if len(given) > 1 {
			slices.Sort(given)
			told = append(told, fmt.Sprintf("%s has %d hosts: %v", consumer, len(given), given))
		}
	}
	return told
}

// named are the kinds whose objects have the name of the Machine that they are made for.
var named = []string{"OpenshiftAssistedConfig", "Metal3Machine"}

// strays names what was made for no Machine, as after a try under another name. They can be told at the end only: a Machine is made last.
func (c *census) strays(namespace string) []string {
	var told []string
	for _, kind := range named {
		for _, name := range c.made[kind] {
			if !c.abandoned && !c.forgiven[name] && !c.ever(name) {
				told = append(told, fmt.Sprintf("%s: %s %s was made, and no Machine of that name", namespace, kind, name))
			}
		}
	}
	return told
}
