// Package informer defines what the informers of the manager cache, by which indexes it is found, and which changes of
// it cause a reconcile.
package informer

import (
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// Cached returns what the cache keeps of each kind: the fields that are read. Of objects that we apply, the cache
// also keeps the fields that we state, to compare with. The kinds of the infrastructure may be installed after the start of
// the manager. A cache does not start with options for a kind that is not served: see [TrimInfrastructure].
func Cached() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&aiv1beta1.Agent{}:             {Transform: kube.Reduce(TrimAgent)},
		&aiv1beta1.InfraEnv{}:          {Transform: kube.Reduce(trimInfraEnv)},
		&aiv1beta1.NMStateConfig{}:     {Transform: kube.Reduce(trimNMStateConfig)},
		&clusterv1.Machine{}:           {Transform: kube.Reduce(trimMachine)},
		&clusterv1.Cluster{}:           {Transform: kube.Reduce(trimCluster)},
		&hivev1.ClusterDeployment{}:    {Transform: kube.Reduce(trimDeployment)},
		&hiveext.AgentClusterInstall{}: {Transform: kube.Reduce(trimInstall)},
		&corev1.Secret{}:               {Transform: kube.Reduce(trimSecret)},
		&corev1.ConfigMap{}:            {Transform: kube.Reduce(kube.MetadataIdentity)},
		// Only the labels of CustomResourceDefinitions are read, which name the versions of a contract.
		&apiextensionsv1.CustomResourceDefinition{}: {Transform: kube.StripMetadata()},
	}
}

func trimMachine(machine *clusterv1.Machine) *clusterv1.Machine {
	kept := &clusterv1.Machine{ObjectMeta: kube.Identity(&machine.ObjectMeta)}
	kept.Labels = kube.SelectKeys(machine.Labels, clusterv1.ClusterNameLabel, clusterv1.MachineControlPlaneLabel)
	read := []string{clusterv1.MachineSkipRemediationAnnotation}
	if !machine.DeletionTimestamp.IsZero() {
		read = append(read, contract.PreTerminateHooks(machine)...)
	}
	kept.Annotations = kube.SelectKeys(machine.Annotations, read...)
	kept.Spec.ClusterName, kept.Spec.ProviderID = machine.Spec.ClusterName, machine.Spec.ProviderID
	kept.Spec.Bootstrap, kept.Spec.InfrastructureRef = machine.Spec.Bootstrap, machine.Spec.InfrastructureRef
	kept.Status.NodeRef = machine.Status.NodeRef
	for _, c := range machine.Status.Conditions {
		if c.Type == clusterv1.MachineNodeReadyCondition || c.Type == clusterv1.MachineNodeHealthyCondition {
			kept.Status.Conditions = append(kept.Status.Conditions,
				metav1.Condition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return kept
}

func trimCluster(cluster *clusterv1.Cluster) *clusterv1.Cluster {
	kept := &clusterv1.Cluster{ObjectMeta: kube.Identity(&cluster.ObjectMeta)}
	kept.Spec.Paused, kept.Spec.ControlPlaneRef = cluster.Spec.Paused, cluster.Spec.ControlPlaneRef
	kept.Status.Initialization = cluster.Status.Initialization
	return kept
}

// ownerLabels are the labels that identify an object of the Machine's Cluster.
var ownerLabels = []string{clusterv1.ClusterNameLabel, clusterv1.MachineControlPlaneNameLabel}

func trimDeployment(deployment *hivev1.ClusterDeployment) *hivev1.ClusterDeployment {
	kept := &hivev1.ClusterDeployment{ObjectMeta: kube.Identity(&deployment.ObjectMeta)}
	kept.Labels = kube.SelectKeys(deployment.Labels, ownerLabels...)
	kept.Annotations = kube.SelectKeys(deployment.Annotations, assisted.OpenShiftVersionAnnotation, contract.ClusterUIDAnnotation)
	kept.Spec.PullSecretRef, kept.Spec.Installed = deployment.Spec.PullSecretRef, deployment.Spec.Installed
	return kept
}

func trimInstall(install *hiveext.AgentClusterInstall) *hiveext.AgentClusterInstall {
	kept := &hiveext.AgentClusterInstall{ObjectMeta: kube.Identity(&install.ObjectMeta)}
	kept.Labels = kube.SelectKeys(install.Labels, ownerLabels...)
	kept.Annotations = kube.SelectKeys(install.Annotations, contract.ClusterUIDAnnotation, bootstrapv1.MachineConfigServerCAAnnotation,
		bootstrapv1.RunningReleaseAnnotation,
		bootstrapv1.InstallationGivenUpAnnotation, bootstrapv1.ClusterWithArbiterAnnotation)
	kept.Spec.ProvisionRequirements, kept.Spec.MirrorRegistryRef = install.Spec.ProvisionRequirements, install.Spec.MirrorRegistryRef
	kept.Status.DebugInfo.State, kept.Status.DebugInfo.StateInfo = install.Status.DebugInfo.State, install.Status.DebugInfo.StateInfo
	for _, c := range install.Status.Conditions {
		if c.Type == hiveext.ClusterCompletedCondition {
			kept.Status.Conditions = append(kept.Status.Conditions,
				hivev1.ClusterInstallCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return kept
}

// trimInfraEnv keeps the whole spec, because we state it, and the status, of which only read fields are decoded.
func trimInfraEnv(infraEnv *aiv1beta1.InfraEnv) *aiv1beta1.InfraEnv {
	kept := &aiv1beta1.InfraEnv{ObjectMeta: kube.Identity(&infraEnv.ObjectMeta), Spec: infraEnv.Spec, Status: infraEnv.Status}
	kept.Labels, kept.ManagedFields = infraEnv.Labels, apply.Own(writer.FieldOwner, infraEnv.ManagedFields)
	kept.Annotations, kept.OwnerReferences = kube.SelectKeys(infraEnv.Annotations, contract.ClusterUIDAnnotation,
		bootstrapv1.MirrorsDigestAnnotation), kube.InternOwners(infraEnv.OwnerReferences)
	return kept
}

// trimNMStateConfig drops the network configuration itself.
func trimNMStateConfig(network *aiv1beta1.NMStateConfig) *aiv1beta1.NMStateConfig {
	kept := &aiv1beta1.NMStateConfig{ObjectMeta: kube.Identity(&network.ObjectMeta)}
	kept.Labels, kept.Spec.Interfaces = network.Labels, slices.Clone(network.Spec.Interfaces)
	return kept
}

// trimSecret keeps the existence of a Secret. Of Secrets that we wrote, it also keeps the owner and the source of
// the data.
func trimSecret(secret *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	kept := kube.MetadataIdentity(secret)
	if secret.Annotations[desired.SourceAnnotation] == "" && secret.Annotations[desired.FencingAnnotation] == "" {
		return kept
	}
	kept.Labels, kept.OwnerReferences = kube.SelectKeys(secret.Labels, clusterv1.ClusterNameLabel), kube.InternOwners(secret.OwnerReferences)
	kept.Annotations = kube.SelectKeys(secret.Annotations, desired.SourceAnnotation, desired.InfraEnvAnnotation, desired.ModifiedAnnotation,
		desired.FencingAnnotation)
	return kept
}
