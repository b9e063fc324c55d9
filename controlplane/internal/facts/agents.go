package facts

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// RunsOn reports whether an Agent booted from the InfraEnv with the name and namespace of a Machine. Another
// server that booted the same image also does. Use RunsOn only to block and describe. Decisions that grant or
// remove something use [Facts.AgentOf].
func RunsOn(agent *aiv1beta1.Agent, m *clusterv1.Machine) bool {
	return agent.Namespace == m.Namespace && agent.Labels[aiv1beta1.InfraEnvNameLabel] == m.Name
}

// AgentOf returns the Agent that the bootstrap provider identified on the host of a Machine and recorded in
// the Machine's OpenshiftAssistedConfig. It returns nil if none is recorded, if the config belongs to another
// Machine, or if the Agent has left the Machine's InfraEnv since.
func (f *Facts) AgentOf(m *clusterv1.Machine) *aiv1beta1.Agent {
	config := f.Configs[m.Name]
	if config == nil || config.Namespace != m.Namespace || !metav1.IsControlledBy(config, m) || config.Status.AgentRef == nil {
		return nil
	}
	for i := range f.Agents {
		if agent := &f.Agents[i]; agent.Name == config.Status.AgentRef.Name && RunsOn(agent, m) {
			return agent
		}
	}
	return nil
}

// NodeOf returns the Node of a Machine that the infrastructure provider has not linked yet. The spec of the
// Agent identifies the Node: by the label of its host, or else by its name. NodeOf returns nil while the
// label that the infrastructure provider requires is missing.
func (f *Facts) NodeOf(m *clusterv1.Machine) *workload.Node {
	agent := f.AgentOf(m)
	if agent == nil {
		return nil
	}
	uid := agent.Spec.NodeLabels[metal3.HostUIDLabel]
	for i := range f.Workload.Nodes {
		node := &f.Workload.Nodes[i]
		switch {
		case node.ProviderID != "":
		case uid != "" && node.HostUID == uid, uid == "" && node.Name == Hostname(agent):
			return node
		}
	}
	return nil
}

// Hostname returns the name of the host of an Agent for messages.
func Hostname(agent *aiv1beta1.Agent) string {
	if agent.Spec.Hostname != "" {
		return agent.Spec.Hostname
	}
	if agent.Status.Inventory.Hostname != "" {
		return agent.Status.Inventory.Hostname
	}
	return agent.Name
}
