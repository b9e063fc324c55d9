package controlplane

import (
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// Fields by which objects are looked up in the caches.
const (
	clusterNameField   = "spec.clusterName"
	agentClusterField  = "spec.clusterDeploymentName"
	pullSecretField    = "spec.config.pullSecretRef.name"
	configMapField     = "spec.config.configMaps"
	imageSetField      = "spec.config.clusterImageSetRef.name"
	infraTemplateField = "spec.machineTemplate.spec.infrastructureRef"
	ownerClusterField  = "metadata.ownerReferences.cluster"
	imageSetOwnerField = "metadata.annotations.owner"
	adminSecretField   = "spec.clusterMetadata.adminKubeconfigSecretRef.name"
)

// index makes objects of a kind be found by a field.
type index struct {
	obj    client.Object
	field  string
	values client.IndexerFunc
}

func indexes() []index {
	return []index{
		{&clusterv1.Machine{}, clusterNameField, values(func(m *clusterv1.Machine) []string { return []string{m.Spec.ClusterName} })},
		{&clusterv1.MachineDeployment{}, clusterNameField, values(func(d *clusterv1.MachineDeployment) []string { return []string{d.Spec.ClusterName} })},
		{&clusterv1.MachineSet{}, clusterNameField, values(func(s *clusterv1.MachineSet) []string { return []string{s.Spec.ClusterName} })},
		{&hivev1.ClusterImageSet{}, imageSetOwnerField, values(func(s *hivev1.ClusterImageSet) []string { return nonEmpty(s.Annotations[ownerAnnotation]) })},
		{&aiv1beta1.Agent{}, agentClusterField, values(clusterOfAgent)},
		{&hiveext.AgentClusterInstall{}, adminSecretField, values(func(i *hiveext.AgentClusterInstall) []string { return nonEmpty(adminSecretOf(i)) })},
		{&controlplanev1.OpenshiftAssistedControlPlane{}, ownerClusterField, values(func(c *controlplanev1.OpenshiftAssistedControlPlane) []string {
			for _, ref := range c.OwnerReferences {
				if ref.Kind == "Cluster" {
					return []string{ref.Name}
				}
			}
			return nil
		})},
		{&controlplanev1.OpenshiftAssistedControlPlane{}, pullSecretField, values(func(c *controlplanev1.OpenshiftAssistedControlPlane) []string {
			if ref := c.Spec.Config.PullSecretRef; ref != nil {
				return nonEmpty(ref.Name)
			}
			return nil
		})},
		{&controlplanev1.OpenshiftAssistedControlPlane{}, configMapField, values(configMapsOf)},
		{&controlplanev1.OpenshiftAssistedControlPlane{}, imageSetField, values(func(c *controlplanev1.OpenshiftAssistedControlPlane) []string {
			if ref := c.Spec.Config.ClusterImageSetRef; ref != nil {
				return nonEmpty(ref.Name)
			}
			return nil
		})},
		{&controlplanev1.OpenshiftAssistedControlPlane{}, infraTemplateField, values(func(c *controlplanev1.OpenshiftAssistedControlPlane) []string {
			ref := c.Spec.MachineTemplate.Spec.InfrastructureRef
			return []string{templateKey(ref.Kind, ref.Name)}
		})},
	}
}

// clusterOfAgent is the ClusterDeployment that an Agent is bound to, as namespace/name.
func clusterOfAgent(a *aiv1beta1.Agent) []string {
	ref := a.Spec.ClusterDeploymentName
	if ref == nil {
		return nil
	}
	return []string{ref.Namespace + "/" + ref.Name}
}

func templateKey(kind, name string) string { return kind + "/" + name }

func values[T client.Object](of func(T) []string) client.IndexerFunc {
	return func(obj client.Object) []string {
		if typed, ok := obj.(T); ok {
			return of(typed)
		}
		return nil
	}
}

func nonEmpty(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}
