package informer

import (
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/hostnetwork"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Field indexes of the cache.
const (
	MachineByConfig         = "bootstrap.configRef"
	MachineByInfraMachine   = "infrastructureRef"
	ConfigByCluster         = "cluster"
	ConfigBySecret          = "secrets"
	ConfigByConfigMap       = "configMaps"
	ConfigByNetworks        = "nmStateConfigs"
	InfraEnvByConfig        = "config"
	InfraEnvByMirrors       = "mirrorRegistryRef"
	AgentByInfraEnv         = "infraEnv"
	ClusterByControlPlane   = "controlPlane"
	DeploymentsByPullSecret = "pullSecret"
	ConfigByAgent           = "agent"
	HostByServer            = "server"
)

// Selecting is the value of ConfigByNetworks for the configs that select NMStateConfigs.
const Selecting = "selecting"

// Indexes returns the indexes that find few objects among many. [HostIndex] is apart, because BareMetalHosts may be
// installed after the start of the manager.
func Indexes() []kube.Index {
	return []kube.Index{
		kube.IndexOf(&clusterv1.Machine{}, MachineByConfig, func(m *clusterv1.Machine) []string { return kube.NonEmpty(ConfigOfMachine(m)) }),
		kube.IndexOf(&clusterv1.Machine{}, MachineByInfraMachine, infraMachineOfMachine),
		kube.IndexOf(&bootstrapv1.OpenshiftAssistedConfig{}, ConfigByCluster,
			labeled[*bootstrapv1.OpenshiftAssistedConfig](clusterv1.ClusterNameLabel)),
		kube.IndexOf(&bootstrapv1.OpenshiftAssistedConfig{}, ConfigBySecret, secretsOfConfig),
		kube.IndexOf(&bootstrapv1.OpenshiftAssistedConfig{}, ConfigByConfigMap, configMapsOfConfig),
		kube.IndexOf(&bootstrapv1.OpenshiftAssistedConfig{}, ConfigByNetworks, networksOfConfig),
		kube.IndexOf(&aiv1beta1.InfraEnv{}, InfraEnvByConfig, labeled[*aiv1beta1.InfraEnv](bootstrapv1.ConfigNameLabel)),
		kube.IndexOf(&aiv1beta1.InfraEnv{}, InfraEnvByMirrors, mirrorsOfInfraEnv),
		kube.IndexOf(&aiv1beta1.Agent{}, AgentByInfraEnv, labeled[*aiv1beta1.Agent](aiv1beta1.InfraEnvNameLabel)),
		kube.IndexOf(&clusterv1.Cluster{}, ClusterByControlPlane,
			func(c *clusterv1.Cluster) []string { return kube.NonEmpty(c.Spec.ControlPlaneRef.Name) }),
		kube.IndexOf(&hivev1.ClusterDeployment{}, DeploymentsByPullSecret, pullSecretOfDeployment),
		kube.IndexOf(&bootstrapv1.OpenshiftAssistedConfig{}, ConfigByAgent, agentOfConfig),
	}
}

// HostIndex returns the index of the BareMetalHosts whose server is in use: see serverInUse. To add it starts the watch of
// BareMetalHosts, so their API must be served.
func HostIndex() kube.Index { return kube.IndexOf(&metal3.Host{}, HostByServer, serverInUse) }

func labeled[T client.Object](label string) func(T) []string {
	return func(o T) []string { return kube.NonEmpty(o.GetLabels()[label]) }
}

// ConfigOfMachine returns the name of the OpenshiftAssistedConfig that the Machine refers to; empty if none.
func ConfigOfMachine(machine *clusterv1.Machine) string {
	ref := machine.Spec.Bootstrap.ConfigRef
	if ref.Kind != "OpenshiftAssistedConfig" || ref.APIGroup != bootstrapv1.GroupVersion.Group {
		return ""
	}
	return ref.Name
}

func infraMachineOfMachine(machine *clusterv1.Machine) []string {
	if ConfigOfMachine(machine) == "" {
		return nil
	}
	return []string{machine.Spec.InfrastructureRef.Kind + "/" + machine.Spec.InfrastructureRef.Name}
}

func secretsOfConfig(config *bootstrapv1.OpenshiftAssistedConfig) []string {
	names := []string{config.Name}
	if config.Spec.PullSecretRef != nil {
		names = append(names, config.Spec.PullSecretRef.Name)
	}
	if ca := config.Spec.AssistedServiceCA; ca != nil && ca.Kind == kube.Secret.Kind {
		names = append(names, ca.Name)
	}
	return kube.NonEmpty(names...)
}

func configMapsOfConfig(config *bootstrapv1.OpenshiftAssistedConfig) []string {
	var names []string
	if ca := config.Spec.AssistedServiceCA; ca != nil && ca.Kind == kube.ConfigMap.Kind {
		names = append(names, ca.Name)
	}
	if ref := config.Spec.MirrorRegistryRef; ref != nil {
		names = append(names, ref.Name)
	}
	return kube.NonEmpty(names...)
}

// mirrorsOfInfraEnv returns the key of the ConfigMap with the mirrors. An InfraEnv has the mirrors of the config, or
// else those of the cluster, which no config names.
func mirrorsOfInfraEnv(infraEnv *aiv1beta1.InfraEnv) []string {
	ref := infraEnv.Spec.MirrorRegistryRef
	if ref == nil {
		return nil
	}
	return []string{client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}.String()}
}

func networksOfConfig(config *bootstrapv1.OpenshiftAssistedConfig) []string {
	if hostnetwork.Wanted(config) {
		return []string{Selecting}
	}
	return nil
}

func pullSecretOfDeployment(deployment *hivev1.ClusterDeployment) []string {
	if deployment.Spec.PullSecretRef == nil {
		return nil
	}
	return kube.NonEmpty(deployment.Spec.PullSecretRef.Name)
}

func agentOfConfig(config *bootstrapv1.OpenshiftAssistedConfig) []string {
	if config.Status.AgentRef == nil {
		return nil
	}
	return kube.NonEmpty(config.Status.AgentRef.Name)
}

func serverInUse(host *metal3.Host) []string {
	if metal3.Claim(host) == "" {
		return nil
	}
	return metal3.ServerKeys(host)
}
