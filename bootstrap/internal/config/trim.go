package config

import (
	"maps"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
)

// TrimAgent is a cache transform that drops what the reconciler does not read of an Agent and what is large.
func TrimAgent(in any) (any, error) {
	agent, ok := in.(*aiv1beta1.Agent)
	if !ok {
		return in, nil
	}
	agent.ManagedFields = apply.Own(FieldManager, agent.ManagedFields)
	maps.DeleteFunc(agent.Annotations, func(key, _ string) bool { return key != skipSpokeCleanupAnnotation })
	agent.Status.ValidationsInfo = nil
	agent.Status.NtpSources = nil
	agent.Status.Progress = aiv1beta1.HostProgressInfo{CurrentStage: agent.Status.Progress.CurrentStage}
	agent.Status.Inventory.Cpu.Flags = nil
	return agent, nil
}

// TrimNMStateConfig is a cache transform that drops the network configuration itself, which is not read.
func TrimNMStateConfig(in any) (any, error) {
	if network, ok := in.(*aiv1beta1.NMStateConfig); ok {
		network.ManagedFields, network.Annotations = nil, nil
		network.Spec.NetConfig = aiv1beta1.NetConfig{}
	}
	return in, nil
}
