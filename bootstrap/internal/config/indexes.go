package config

import (
	"context"
	"fmt"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/provider"
)

// hostAnnotation names, on a Metal3Machine, its BareMetalHost as namespace/name (CAPM3).
const hostAnnotation = "metal3.io/BareMetalHost"

// Field indexes of the cache.
const (
	machineByConfig         = "bootstrap.configRef"
	machineByInfraMachine   = "infrastructureRef"
	configByCluster         = "cluster"
	configBySecret          = "secrets"
	configByConfigMap       = "configMaps"
	configByNetworks        = "nmStateConfigs"
	infraEnvByConfig        = "config"
	agentByInfraEnv         = "infraEnv"
	agentByMAC              = "mac"
	hostByConsumer          = "consumer"
	hostByMAC               = "mac"
	clusterByControlPlane   = "controlPlane"
	deploymentsByPullSecret = "pullSecret"
)

// selecting is the value of configByNetworks for the configs that select NMStateConfigs.
const selecting = "selecting"

type index struct {
	obj     client.Object
	field   string
	extract client.IndexerFunc
}

// indexes are those of the objects that exist everywhere.
func indexes() []index {
	return []index{
		{&clusterv1.Machine{}, machineByConfig, func(o client.Object) []string { return some(configOfMachine(o)) }},
		{&clusterv1.Machine{}, machineByInfraMachine, infraMachineOfMachine},
		{&bootstrapv1.OpenshiftAssistedConfig{}, configByCluster, func(o client.Object) []string { return some(o.GetLabels()[clusterv1.ClusterNameLabel]) }},
		{&bootstrapv1.OpenshiftAssistedConfig{}, configBySecret, secretsOfConfig},
		{&bootstrapv1.OpenshiftAssistedConfig{}, configByConfigMap, configMapsOfConfig},
		{&bootstrapv1.OpenshiftAssistedConfig{}, configByNetworks, networksOfConfig},
		{&aiv1beta1.InfraEnv{}, infraEnvByConfig, func(o client.Object) []string { return some(o.GetLabels()[bootstrapv1.ConfigNameLabel]) }},
		{&aiv1beta1.Agent{}, agentByInfraEnv, func(o client.Object) []string { return some(o.GetLabels()[aiv1beta1.InfraEnvNameLabel]) }},
		{&aiv1beta1.Agent{}, agentByMAC, macsOfAgent},
		{&clusterv1.Cluster{}, clusterByControlPlane, controlPlaneOfCluster},
		{&hivev1.ClusterDeployment{}, deploymentsByPullSecret, pullSecretOfDeployment},
	}
}

// metal3Indexes are those of BareMetalHosts.
func metal3Indexes() []index {
	return []index{
		{&metal3api.BareMetalHost{}, hostByConsumer, func(o client.Object) []string { return some(consumerOfHost(o)) }},
		{&metal3api.BareMetalHost{}, hostByMAC, macsOfHost},
	}
}

func (r *Reconciler) addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	all := indexes()
	if r.metal3.Load() {
		all = append(all, metal3Indexes()...)
	}
	for _, i := range all {
		if err := indexer.IndexField(ctx, i.obj, i.field, i.extract); err != nil {
			return fmt.Errorf("cannot index %T by %s: %w", i.obj, i.field, err)
		}
	}
	return nil
}

func some(values ...string) []string {
	var result []string
	for _, v := range values {
		if v != "" {
			result = append(result, v)
		}
	}
	return result
}

// configOfMachine is the name of the OpenshiftAssistedConfig that the Machine refers to.
func configOfMachine(o client.Object) string {
	machine, ok := o.(*clusterv1.Machine)
	if !ok {
		return ""
	}
	ref := machine.Spec.Bootstrap.ConfigRef
	if ref.Kind != "OpenshiftAssistedConfig" || ref.APIGroup != bootstrapv1.GroupVersion.Group {
		return ""
	}
	return ref.Name
}

func infraMachineOfMachine(o client.Object) []string {
	machine, ok := o.(*clusterv1.Machine)
	if !ok || configOfMachine(o) == "" {
		return nil
	}
	return []string{machine.Spec.InfrastructureRef.Kind + "/" + machine.Spec.InfrastructureRef.Name}
}

func secretsOfConfig(o client.Object) []string {
	config, ok := o.(*bootstrapv1.OpenshiftAssistedConfig)
	if !ok {
		return nil
	}
	names := []string{config.Name}
	if config.Spec.PullSecretRef != nil {
		names = append(names, config.Spec.PullSecretRef.Name)
	}
	if ca := config.Spec.AssistedServiceCA; ca != nil && ca.Kind == "Secret" {
		names = append(names, ca.Name)
	}
	return some(names...)
}

func configMapsOfConfig(o client.Object) []string {
	config, ok := o.(*bootstrapv1.OpenshiftAssistedConfig)
	if !ok || config.Spec.AssistedServiceCA == nil || config.Spec.AssistedServiceCA.Kind != "ConfigMap" {
		return nil
	}
	return some(config.Spec.AssistedServiceCA.Name)
}

func networksOfConfig(o client.Object) []string {
	if config, ok := o.(*bootstrapv1.OpenshiftAssistedConfig); ok && wantsNetworks(config) {
		return []string{selecting}
	}
	return nil
}

func macsOfAgent(o client.Object) []string {
	if agent, ok := o.(*aiv1beta1.Agent); ok {
		return assisted.AgentIdentity(agent).MACs
	}
	return nil
}

func macsOfHost(o client.Object) []string {
	if host, ok := o.(*metal3api.BareMetalHost); ok {
		return assisted.IdentityOf(host).MACs
	}
	return nil
}

// consumerOfHost is the Metal3Machine that a BareMetalHost is given to.
func consumerOfHost(o client.Object) string {
	host, ok := o.(*metal3api.BareMetalHost)
	if !ok || host.Spec.ConsumerRef == nil || host.Spec.ConsumerRef.Kind != provider.Metal3MachineKind {
		return ""
	}
	namespace := host.Spec.ConsumerRef.Namespace
	if namespace == "" {
		namespace = host.Namespace
	}
	return consumerKey(namespace, host.Spec.ConsumerRef.Name)
}

func consumerKey(namespace, name string) string { return namespace + "/" + name }

func controlPlaneOfCluster(o client.Object) []string {
	if cluster, ok := o.(*clusterv1.Cluster); ok {
		return some(cluster.Spec.ControlPlaneRef.Name)
	}
	return nil
}

func pullSecretOfDeployment(o client.Object) []string {
	if deployment, ok := o.(*hivev1.ClusterDeployment); ok && deployment.Spec.PullSecretRef != nil {
		return some(deployment.Spec.PullSecretRef.Name)
	}
	return nil
}
