package facts

import (
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// RunsOn tells whether an Agent runs on the host of a Machine: it booted from the InfraEnv of the Machine's name.
func RunsOn(agent *aiv1beta1.Agent, m *clusterv1.Machine) bool {
	return agent.Labels[aiv1beta1.InfraEnvNameLabel] == m.Name
}

// NodeOf finds the Node of a Machine that the infrastructure provider has not linked yet, by what its Agent was told: the label of its host,
// else its name. It is nil as long as the label that the infrastructure provider looks for is not there.
func (f *Facts) NodeOf(m *clusterv1.Machine) *Node {
	for i := range f.Agents {
		agent := &f.Agents[i]
		if !RunsOn(agent, m) {
			continue
		}
		uid := agent.Spec.NodeLabels[metal3.HostUIDLabel]
		for j := range f.Workload.Nodes {
			node := &f.Workload.Nodes[j]
			switch {
			case node.ProviderID != "":
			case uid != "" && node.HostUID == uid, uid == "" && node.Name == Hostname(agent):
				return node
			}
		}
	}
	return nil
}

// Hostname is the name by which people know the host of an Agent.
func Hostname(agent *aiv1beta1.Agent) string {
	if agent.Spec.Hostname != "" {
		return agent.Spec.Hostname
	}
	if agent.Status.Inventory.Hostname != "" {
		return agent.Status.Inventory.Hostname
	}
	return agent.Name
}
