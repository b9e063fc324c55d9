package desired

import (
	"fmt"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// ServerInUse states, for users, which other objects show that the Machine's server is in use, and what to do; empty when none does. agent is the one that runs on the host, nil while there is none;
// others run on the same server; recorded are claims of other configs.
func ServerInUse(f *facts.Facts, agent *aiv1beta1.Agent, others []*aiv1beta1.Agent, recorded []string) string {
	var hosts, agents []string
	if f.Host != nil {
		hosts = f.Claims(f.Host)
	}
	for _, other := range others {
		if claim := facts.InUse(other); agent != nil && claim != "" {
			agents = append(agents, fmt.Sprintf("Agent %s of InfraEnv %s, which %s, has the same hardware", other.Name, facts.InfraEnvOf(other), claim))
		}
	}
	claims := append(append(append([]string{}, hosts...), recorded...), agents...)
	if len(claims) == 0 {
		return ""
	}
	server := "The host"
	if f.Host != nil {
		server = "BareMetalHost " + f.Host.Namespace + "/" + f.Host.Name
	}
	message := server + " stands for a server that is in use: " + bound.List(claims)
	if agent != nil {
		message += ". Agent " + agent.Name + " is not approved: that would overwrite the disks of the server"
	}
	switch {
	case len(hosts) > 0:
		return message + ". " + KeepOneHost
	case len(recorded) > 0:
		return message + ". Correct what started the server from the image of this Machine (spec.bmc.address, boot order), and start it from its disk"
	}
	return message + ". If no cluster runs on the server any more, the other Agent is left of a former registration: then delete that Agent. A server that still runs would be removed from its cluster and reinstalled"
}

// KeepOneHost is what to do when two BareMetalHosts stand for one server. The Bare Metal Operator switches the server of a deleted BareMetalHost off, and cleans the disks of one that it provisioned,
// unless the BareMetalHost is detached.
const KeepOneHost = "Keep one BareMetalHost for the server: annotate the wrong one with baremetalhost.metal3.io/detached before you delete it. Deleted without that annotation, it switches the server off, and may wipe its disks"
