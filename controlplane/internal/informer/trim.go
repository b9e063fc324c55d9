package informer

import (
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Cached returns the transforms of the cache, which keep the fields that are read. For objects that this provider applies,
// they also keep the applied fields, to compare with the desired object. Infrastructure machines and their templates are of
// any kind: see [TrimInfra].
func Cached() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&controlplanev1.OpenshiftAssistedControlPlane{}: {Transform: kube.Reduce(trimControlPlane)},
		&bootstrapv1.OpenshiftAssistedConfig{}:          {Transform: kube.Reduce(trimConfig)},
		&clusterv1.Cluster{}:                            {Transform: kube.Reduce(trimCluster)},
		&clusterv1.Machine{}:                            {Transform: kube.Reduce(trimMachine)},
		&clusterv1.MachineDeployment{}:                  {Transform: kube.Reduce(trimMachineDeployment)},
		&clusterv1.MachineSet{}:                         {Transform: kube.Reduce(trimMachineSet)},
		&hivev1.ClusterDeployment{}:                     {Transform: kube.Reduce(trimDeployment)},
		&hiveext.AgentClusterInstall{}:                  {Transform: kube.Reduce(trimInstall)},
		&hivev1.ClusterImageSet{}:                       {Transform: kube.Reduce(trimImageSet)},
		&aiv1beta1.Agent{}:                              {Transform: kube.Reduce(trimAgent)},
		&corev1.Secret{}:                                {Transform: kube.Reduce(trimSecret)},
		&corev1.ConfigMap{}:                             {Transform: kube.Reduce(kube.MetadataIdentity)},
		// Of CustomResourceDefinitions only the labels with the versions of a contract are read.
		kube.MetadataOf(kube.CustomResourceDefinition): {Transform: kube.StripMetadata()},
	}
}

// ownLabels are the labels of the objects of a control plane: see [facts.Facts.Labels].
var ownLabels = []string{clusterv1.ClusterNameLabel, clusterv1.MachineControlPlaneNameLabel}

// trimDeployment keeps the whole spec until spec.installed is set: this provider applies the spec, and this field last.
func trimDeployment(deployment *hivev1.ClusterDeployment) *hivev1.ClusterDeployment {
	kept := &hivev1.ClusterDeployment{ObjectMeta: kube.Identity(&deployment.ObjectMeta)}
	kept.Labels = kube.SelectKeys(deployment.Labels, ownLabels...)
	kept.Annotations = kube.SelectKeys(deployment.Annotations, assisted.OpenShiftVersionAnnotation, contract.ClusterUIDAnnotation)
	if deployment.Spec.Installed {
		kept.Spec.Installed, kept.Spec.ClusterInstallRef = true, deployment.Spec.ClusterInstallRef
	} else {
		kept.Spec, kept.ManagedFields = deployment.Spec, apply.Own(writer.FieldOwner, deployment.ManagedFields)
	}
	apply.KeepMetadata(writer.MetadataOwner, deployment, kept)
	return kept
}

// forBootstrap are the annotations for the bootstrap provider.
var forBootstrap = []string{
	bootstrapv1.MachineConfigServerCAAnnotation, bootstrapv1.RunningReleaseAnnotation,
	bootstrapv1.InstallationGivenUpAnnotation, bootstrapv1.ClusterWithArbiterAnnotation,
	bootstrapv1.MirrorsDigestAnnotation,
}

// trimInstall keeps the whole spec until it names the credentials of the cluster. Once the hosts are being installed, this
// provider does not apply the spec.
func trimInstall(install *hiveext.AgentClusterInstall) *hiveext.AgentClusterInstall {
	kept := &hiveext.AgentClusterInstall{ObjectMeta: kube.Identity(&install.ObjectMeta), Status: trimInstallStatus(install)}
	if install.Spec.ClusterMetadata != nil {
		kept.Labels = kube.SelectKeys(install.Labels, ownLabels...)
		read := slices.Concat([]string{facts.ImportedAnnotation, contract.ClusterUIDAnnotation}, assisted.IgnoredValidations(), forBootstrap)
		kept.Annotations = kube.SelectKeys(install.Annotations, read...)
		kept.Spec.ImageSetRef, kept.Spec.ClusterDeploymentRef = install.Spec.ImageSetRef, install.Spec.ClusterDeploymentRef
		kept.Spec.ClusterMetadata = install.Spec.ClusterMetadata
		kept.Spec.ProvisionRequirements.WorkerAgents = install.Spec.ProvisionRequirements.WorkerAgents
		apply.KeepMetadata(writer.MetadataOwner, install, kept)
		return kept
	}
	kept.Labels = kube.SelectKeys(install.Labels, append(slices.Clone(ownLabels), hiveext.ClusterConsumerLabel)...)
	read := slices.Concat([]string{
		assisted.InstallConfigOverridesAnnotation, assisted.NTPSourcesAnnotation, contract.ClusterUIDAnnotation,
	}, assisted.IgnoredValidations(), forBootstrap)
	kept.Annotations = kube.SelectKeys(install.Annotations, read...)
	kept.Spec, kept.ManagedFields = install.Spec, apply.Own(writer.FieldOwner, install.ManagedFields)
	apply.KeepMetadata(writer.MetadataOwner, install, kept)
	return kept
}

// readInstallConditions are the conditions of AgentClusterInstalls that are reported.
var readInstallConditions = []hivev1.ClusterInstallConditionType{
	hiveext.ClusterSpecSyncedCondition, hiveext.ClusterValidatedCondition, hiveext.ClusterRequirementsMetCondition,
	hiveext.ClusterCompletedCondition, hiveext.ClusterLastInstallationPreparationFailedCondition,
}

// trimInstallStatus keeps only the end of the installation of an installed cluster. Until assisted-service registers the
// cluster, the last change of any condition shows since when assisted-service has not responded.
func trimInstallStatus(install *hiveext.AgentClusterInstall) hiveext.AgentClusterInstallStatus {
	kept, status, observed := hiveext.AgentClusterInstallStatus{}, &install.Status, assisted.Observe(install)
	kept.DebugInfo.State = kube.Intern(status.DebugInfo.State)
	read := readInstallConditions
	if observed.DayTwo {
		read = []hivev1.ClusterInstallConditionType{hiveext.ClusterCompletedCondition}
	} else {
		kept.DebugInfo, kept.Progress.TotalPercentage = status.DebugInfo, status.Progress.TotalPercentage
	}
	for _, c := range status.Conditions {
		if !observed.Registered || slices.Contains(read, c.Type) {
			left := hivev1.ClusterInstallCondition{
				Type: kube.Intern(c.Type), Status: kube.Intern(c.Status), LastTransitionTime: c.LastTransitionTime,
			}
			if !observed.DayTwo {
				left.Reason, left.Message = c.Reason, c.Message
			}
			kept.Conditions = append(kept.Conditions, left)
		}
	}
	return kept
}

// trimImageSet keeps the applied fields: this provider may refer to any ClusterImageSet.
func trimImageSet(set *hivev1.ClusterImageSet) *hivev1.ClusterImageSet {
	kept := &hivev1.ClusterImageSet{ObjectMeta: kube.Identity(&set.ObjectMeta), Spec: set.Spec}
	kept.Labels = kube.SelectKeys(set.Labels, ownLabels...)
	kept.Annotations = kube.SelectKeys(set.Annotations, facts.OwnerAnnotation, facts.ResolvedFromAnnotation, facts.ResolvedThroughAnnotation)
	kept.ManagedFields = apply.Own(writer.FieldOwner, set.ManagedFields)
	return kept
}

// trimAgent keeps the identity of the host and its Machine, its progress, its failed validations or their end, and since when
// it is bound.
func trimAgent(agent *aiv1beta1.Agent) *aiv1beta1.Agent {
	kept := &aiv1beta1.Agent{ObjectMeta: kube.Identity(&agent.ObjectMeta)}
	kept.Labels = kube.SelectKeys(agent.Labels, aiv1beta1.InfraEnvNameLabel)
	kept.Spec.ClusterDeploymentName, kept.Spec.Hostname = agent.Spec.ClusterDeploymentName, agent.Spec.Hostname
	kept.Spec.NodeLabels = kube.SelectKeys(agent.Spec.NodeLabels, metal3.HostUIDLabel)
	kept.Status.Inventory.Hostname = agent.Status.Inventory.Hostname
	// The Node of an installed host reports the addresses.
	if addresses := assisted.Addresses(agent); len(addresses) > 0 && agent.Status.Progress.CurrentStage != aiv1beta1.HostStageDone {
		kept.Status.Inventory.Interfaces = []aiv1beta1.HostInterface{{IPV4Addresses: addresses}}
	}
	kept.Status.DebugInfo.State, kept.Status.DebugInfo.StateInfo = agent.Status.DebugInfo.State, agent.Status.DebugInfo.StateInfo
	kept.Status.Role, kept.Status.Bootstrap = kube.Intern(agent.Status.Role), agent.Status.Bootstrap
	kept.Status.Progress.CurrentStage = kube.Intern(agent.Status.Progress.CurrentStage)
	kept.Status.Progress.StageStartTime = agent.Status.Progress.StageStartTime
	if c := assisted.AgentCondition(agent, aiv1beta1.ValidatedCondition); c.Status == corev1.ConditionFalse {
		kept.Status.Conditions = append(kept.Status.Conditions, conditionsv1.Condition{Type: c.Type, Status: c.Status, Message: c.Message})
	}
	if c := assisted.AgentCondition(agent, aiv1beta1.RequirementsMetCondition); c.Status == corev1.ConditionTrue {
		kept.Status.Conditions = append(kept.Status.Conditions, conditionsv1.Condition{
			Type: kube.Intern(c.Type), Status: kube.Intern(c.Status), LastTransitionTime: c.LastTransitionTime,
		})
	}
	if c := assisted.AgentCondition(agent, aiv1beta1.BoundCondition); !c.LastTransitionTime.IsZero() {
		kept.Status.Conditions = append(kept.Status.Conditions, conditionsv1.Condition{
			Type: kube.Intern(c.Type), Status: kube.Intern(c.Status), LastTransitionTime: c.LastTransitionTime,
		})
	}
	return kept
}

// trimSecret keeps the owners of a Secret, and the annotations of a published kubeconfig.
func trimSecret(secret *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	kept := kube.MetadataIdentity(secret)
	kept.OwnerReferences = kube.InternOwners(secret.OwnerReferences)
	kept.Annotations = kube.SelectKeys(secret.Annotations, facts.KubeconfigAnnotations()...)
	return kept
}
