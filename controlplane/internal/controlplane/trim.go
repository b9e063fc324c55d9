package controlplane

import aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"

// TrimAgent is a cache transform that drops what the reconciler does not read of an Agent; its annotations and its inventory are the bulk of it.
func TrimAgent(in any) (any, error) {
	agent, ok := in.(*aiv1beta1.Agent)
	if !ok {
		return in, nil
	}
	agent.ManagedFields, agent.Annotations = nil, nil
	agent.Spec.IgnitionConfigOverrides = ""
	agent.Status.Inventory = aiv1beta1.HostInventory{Hostname: agent.Status.Inventory.Hostname}
	agent.Status.ValidationsInfo = nil
	return agent, nil
}
