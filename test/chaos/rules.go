package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// The rules that hold whatever happens.
const (
	provenRule   = "no approval without proof"
	lossRule     = "no host is installed or wiped without being asked"
	deletionRule = "nothing is deleted without being asked"
	loadRule     = "nothing is asked for over and over"
	twiceRule    = "nothing is made twice"
	secretRule   = "no secret is told"
	// certificateRule is about requests of acts, which nobody who joins a cluster makes.
	certificateRule = "nobody gets a certificate who is no host of the cluster, or for what is not its own"
	conditionRule   = "every wait has a condition with a message"
	panicRule       = "nothing panics, and no data race is found"
	endRule         = "everything comes to its end when the faults stop"
	missRule        = "everything that is to go wrong does"
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

// unproven tells why an Agent may not have been approved: its host, which stays are given of, was not that of the Machine whose image it booted. It is empty when all is well.
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

// unspoken tells of an object that has no summary though there was time enough.
func unspoken(kind string, key types.NamespacedName, age time.Duration, conditions []metav1.Condition) string {
	wanted := summaries[kind]
	if wanted == "" || age < grace || meta.FindStatusCondition(conditions, wanted) != nil {
		return ""
	}
	return fmt.Sprintf("%s %s has no condition %s", kind, key, wanted)
}

// census is what was ever seen of a namespace, which has one cluster: names and UIDs by kind.
type census struct {
	// replicas is how many Machines the control plane is to have.
	replicas int
	// asked are the names of Machines that were deleted on purpose, fewer and fewerMasters how many workers and masters are to go whichever they are, again the Machines that an installation anew replaces. excused are
	// the objects of a kind that somebody deleted who may not.
	asked                      map[string]bool
	fewer, fewerMasters, again int
	excused                    map[string]int
	// retried: the cluster was to be installed anew. leaving: it was deleted.
	retried, leaving bool
	// infraEnvs are the names of the InfraEnvs that Agents come from, which are those of Machines.
	infraEnvs map[string]string
	// abandoned: the cluster was deleted while it was made.
	abandoned bool
	// masters are the UIDs of control-plane Machines, machines those of all.
	masters, machines map[types.UID]string
	// made are the UIDs of other kinds, with their names.
	made map[string]map[types.UID]string
	// gone is how many of a kind are there no more.
	gone map[string]int
	// consumers are the hosts that are given to an infra machine now.
	consumers map[types.NamespacedName][]string
}

// single are the kinds of which a cluster has one.
var single = []string{"ClusterDeployment", "AgentClusterInstall"}

// replaced is how many control-plane Machines were deleted on purpose.
func (c *census) replaced() int {
	n := c.again
	for _, name := range c.masters {
		if c.asked[name] {
			n++
		}
	}
	return n
}

// doubles names what there was more of than there may be.
func (c *census) doubles(namespace string) []string {
	var told []string
	if replaced := c.replaced(); c.replicas > 0 && len(c.masters) > c.replicas+replaced {
		told = append(told, fmt.Sprintf("%s: %d control-plane Machines were made for %d replicas, of which %d were replaced", namespace, len(c.masters), c.replicas, replaced))
	}
	for _, kind := range single {
		if n := len(c.made[kind]); n > 1+c.excused[kind] {
			told = append(told, fmt.Sprintf("%s: %d objects of kind %s were made, of which %d were deleted by somebody else", namespace, n, kind, c.excused[kind]))
		}
	}
	if n := len(c.made["InfraEnv"]); n > len(c.machines)+c.excused["InfraEnv"] {
		told = append(told, fmt.Sprintf("%s: %d InfraEnvs were made for %d Machines, of which %d were deleted by somebody else", namespace, n, len(c.machines), c.excused["InfraEnv"]))
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
	machines := slices.Collect(maps.Values(c.machines))
	var told []string
	for _, kind := range named {
		for _, name := range c.made[kind] {
			if !c.abandoned && !slices.Contains(machines, name) {
				told = append(told, fmt.Sprintf("%s: %s %s was made, and no Machine of that name", namespace, kind, name))
			}
		}
	}
	return told
}
