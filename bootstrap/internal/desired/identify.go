package desired

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Identification is the result of the search for the Agent on the Machine's host.
type Identification struct {
	// Agent is the identified Agent; nil if there is none yet.
	Agent *aiv1beta1.Agent
	// Reason and Message explain a missing Agent.
	Reason, Message string
	// Refusals explain which Agents are not on the Machine's host.
	Refusals []string
	// Refused are those of them that are bound, because earlier facts identified them. They are never
	// approved.
	Refused []*aiv1beta1.Agent
	// Others are further Agents on the Machine's host, from earlier registrations with another ID.
	Others []*aiv1beta1.Agent
}

// Identify decides which of the Agents that booted from the Machine's own InfraEnv runs on its host. With a
// BareMetalHost the hardware must match. Without a BareMetalHost only the Machine has the image of its
// InfraEnv. A single Agent is then its host, unless it registered before the Machine's server could. Two
// Agents prove that another server booted the image.
func Identify(f *facts.Facts, elsewhere []*aiv1beta1.Agent) Identification {
	approved, host := f.ApprovedAgent(), f.Host
	if f.HasBareMetalHost() && host == nil {
		if approved != nil {
			return Identification{Agent: approved}
		}
		return Identification{
			Reason:  bootstrapv1.WaitingForHostReason,
			Message: "waiting for the infrastructure provider to choose a BareMetalHost",
		}
	}
	if !f.HasBareMetalHost() {
		return identifyByImage(f)
	}
	wanted := metal3.IdentityOf(host)
	name := host.Namespace + "/" + host.Name
	if len(wanted.MACs) == 0 && approved == nil {
		return Identification{
			Reason:  bootstrapv1.WaitingForHostIdentityReason,
			Message: fmt.Sprintf("BareMetalHost %s has no MAC address to compare with: set spec.bootMACAddress or wait for inspection", name),
		}
	}
	var result Identification
	var matching []*aiv1beta1.Agent
	var silent []string
	for _, agent := range f.Agents {
		switch {
		case agent == approved: // identified before; it stays the Machine's host when the BareMetalHost changes
			matching = append(matching, agent)
		case !assisted.HasInventory(agent) && f.IsRecorded(agent) && facts.Bound(agent):
			matching = append(matching, agent) // identified before; assisted-service drops the inventory of a host that it binds
		case !assisted.HasInventory(agent):
			silent = append(silent, agent.Name)
		default:
			mismatch := f.Mismatch(agent)
			if mismatch == "" {
				matching = append(matching, agent)
				continue
			}
			result.Refusals = append(result.Refusals, fmt.Sprintf("Agent %s is not BareMetalHost %s: %s", agent.Name, name, mismatch))
			if facts.Bound(agent) && !agent.Spec.Approved {
				result.Refused = append(result.Refused, agent)
			}
		}
	}
	for _, agent := range elsewhere {
		result.Refusals = append(result.Refusals, fmt.Sprintf(
			"Agent %s has the MAC addresses of BareMetalHost %s but booted the image of InfraEnv %s: two BareMetalHosts probably have the same "+
				"BMC address",
			agent.Name,
			name,
			facts.InfraEnvOf(agent),
		))
	}
	if len(matching) == 0 {
		result.Reason, result.Message = unidentified(name, silent, result.Refusals)
		return result
	}
	result.Agent = preferredAgent(f, matching)
	result.Others = slices.DeleteFunc(matching, func(agent *aiv1beta1.Agent) bool { return agent == result.Agent })
	return result
}

// preferredAgent returns the one of several Agents of a host that belongs to the Machine. The order is: the
// recorded Agent, an Agent that may be installing, a connected Agent. A host gets a further Agent when its
// system UUID changes.
func preferredAgent(f *facts.Facts, agents []*aiv1beta1.Agent) *aiv1beta1.Agent {
	return slices.MinFunc(agents, func(a, b *aiv1beta1.Agent) int { return preference(f, a) - preference(f, b) })
}

func preference(f *facts.Facts, agent *aiv1beta1.Agent) int {
	switch {
	case f.IsRecorded(agent):
		return 0
	case facts.Bound(agent) && agent.Spec.Approved:
		return 1
	case assisted.AgentCondition(agent, aiv1beta1.ConnectedCondition).Status == corev1.ConditionTrue:
		return 2
	}
	return 3
}

func unidentified(host string, silent, refusals []string) (reason, message string) {
	switch {
	case len(refusals) > 0:
		// The Bare Metal Operator's webhook refuses another boot MAC or BMC address.
		action := ". If BareMetalHost " + host + " has the BMC address of another server, do not delete the Machine first, which would wipe " +
			"that server: " + DetachFirst
		return bootstrapv1.HostRefusedReason, bound.FitBefore(bound.Join(refusals, "Agent"), action) + action
	case len(silent) > 0:
		return bootstrapv1.WaitingForHostIdentityReason, fmt.Sprintf("waiting for Agent %s to report its hardware, which identifies "+
			"BareMetalHost %s", bound.List(silent), host)
	default:
		return bootstrapv1.WaitingForHostReason, fmt.Sprintf("waiting for BareMetalHost %s to boot the discovery image", host)
	}
}

func identifyByImage(f *facts.Facts) Identification {
	agents := f.Agents
	if problem := earlyRegistrations(f); problem != "" {
		return Identification{Reason: bootstrapv1.HostRefusedReason, Message: problem, Refusals: []string{problem}}
	}
	switch len(agents) {
	case 0:
		return Identification{Reason: bootstrapv1.WaitingForHostReason, Message: "waiting for the host to boot the discovery image"}
	case 1:
		if !assisted.HasInventory(agents[0]) && !facts.Bound(agents[0]) {
			return Identification{
				Reason:  bootstrapv1.WaitingForHostIdentityReason,
				Message: fmt.Sprintf("waiting for %s to report its hardware", f.DescribeAgent(agents[0])),
			}
		}
		if f.DataAgeUnknown(agents[0]) {
			return Identification{
				Reason:  bootstrapv1.WaitingForHostIdentityReason,
				Message: fmt.Sprintf("waiting for the bootstrap data Secret, whose age shows whether Agent %s may be the host", agents[0].Name),
			}
		}
		return Identification{Agent: agents[0]}
	}
	for _, agent := range agents {
		if agent.Spec.Approved && facts.Bound(agent) {
			return Identification{Agent: agent, Refusals: []string{fmt.Sprintf("%d Agents booted the discovery image of this Machine", len(agents))}}
		}
	}
	names := make([]string, 0, len(agents))
	for _, agent := range agents {
		names = append(names, agent.Name)
	}
	message := fmt.Sprintf(
		"Agents %s booted the discovery image of this Machine, and nothing shows which of them is its host. Delete the Agents of the other "+
			"servers: what runs on these is not wiped, but an Agent that is bound is removed from its cluster and reinstalled",
		bound.List(names),
	)
	return Identification{Reason: bootstrapv1.HostRefusedReason, Message: message, Refusals: []string{message}}
}

// earlyRegistrations returns which Agents registered before the Machine's server had anything to boot, for
// messages; "" if none did. They prove that another server booted the image. Agents that register later are
// then not identified either.
func earlyRegistrations(f *facts.Facts) string {
	if f.ApprovedAgent() != nil {
		return ""
	}
	var names []string
	for _, agent := range f.Agents {
		if f.RegisteredBeforeData(agent) {
			names = append(names, agent.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(
		"Agent %s registered before the bootstrap data of this Machine existed: that server is not the Machine's host. Switch it off, or start "+
			"it from its disk, then delete the Agent if it belongs to no cluster: a server of a cluster would be reinstalled. A server that still "+
			"runs the image registers again, and is mistaken for the host",
		bound.List(names),
	)
}
