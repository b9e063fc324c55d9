package desired

import (
	"fmt"
	"slices"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// ServerInUse returns which other objects show that the Machine's server is in use, and the action, for
// messages; "" if none does. agent is the Agent on the host, or nil. others are Agents on the same server.
// recorded are claims of other configs.
func ServerInUse(f *facts.Facts, agent *aiv1beta1.Agent, others []*aiv1beta1.Agent, recorded []string) string {
	var hosts, agents []string
	if f.Host != nil {
		hosts = f.Claims(f.Host)
	}
	for _, other := range others {
		if claim := facts.InUse(other); agent != nil && claim != "" {
			agents = append(
				agents,
				fmt.Sprintf("Agent %s of InfraEnv %s, which %s, has the same hardware", other.Name, facts.InfraEnvOf(other), claim),
			)
		}
	}
	claims := slices.Concat(hosts, recorded, agents)
	if len(claims) == 0 {
		return ""
	}
	server := "The host"
	if f.Host != nil {
		server = "BareMetalHost " + f.Host.Namespace + "/" + f.Host.Name
	}
	message := server + " describes a server that is in use: " + bound.List(claims)
	if agent != nil {
		message += ". Agent " + agent.Name + " is not approved: that would overwrite the disks of the server"
	}
	switch {
	case len(hosts) > 0:
		return message + ". " + KeepOneHost
	case len(recorded) > 0:
		return message + ". Correct what started the server from the image of this Machine (spec.bmc.address, boot order), and start it " +
			"from its disk. If the server was repaired and replaces its former Machine, delete that Machine, which wipes the BareMetalHost " +
			"that it has"
	}
	return message + ". If no cluster runs on the server any more, the other Agent is left from a former registration: then delete that " +
		"Agent. A server that still runs would be removed from its cluster and reinstalled"
}

// DetachFirst is the action to delete a BareMetalHost whose BMC address may be that of a server in use. The
// annotation alone does not protect the server. The Bare Metal Operator deprovisions, or switches off, the
// server of every deleted BareMetalHost whose status does not report that it is detached. See
// checkInitiateDelete in its host_state_machine.go. It detaches hosts only in some states.
const DetachFirst = "set the annotation baremetalhost.metal3.io/detached and wait until status.operationalStatus is detached before " +
	"you delete it, else that server is switched off and may be wiped"

// KeepOneHost is the action when two BareMetalHosts describe one server.
const KeepOneHost = "Keep one BareMetalHost for the server. To delete the wrong one, " + DetachFirst
