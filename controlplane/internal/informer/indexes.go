package informer

import (
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/preflight"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// Fields of the indexes of the caches.
const (
	ClusterNameField   = "spec.clusterName"
	AgentClusterField  = "spec.clusterDeploymentName"
	PullSecretField    = "spec.config.pullSecretRef.name"
	ConfigMapField     = "spec.config.configMaps"
	ClaimField         = "spec.config.claims"
	ForeignAgentField  = "spec.clusterDeploymentName.otherNamespace"
	ImageSetField      = "spec.config.clusterImageSetRef.name"
	InfraTemplateField = "spec.machineTemplate.spec.infrastructureRef"
	ImageSetOwnerField = "metadata.annotations.owner"
	AdminSecretField   = "spec.clusterMetadata.adminKubeconfigSecretRef.name"
	CapacityField      = "metadata.annotations.capacity"
	// AllField finds all objects of a namespace, by [All]. The caches have no index of namespaces.
	AllField = "all"
)

// Values of indexes without values of their own.
const (
	// Stated is the value of CapacityField for the MachineDeployments that state their capacity, or request it.
	Stated = "stated"
	// All is the value of AllField.
	All = "all"
)

// Indexes returns the indexes of the caches.
func Indexes() []kube.Index {
	type (
		controlPlane = controlplanev1.OpenshiftAssistedControlPlane
		deployment   = clusterv1.MachineDeployment
		machineSet   = clusterv1.MachineSet
		install      = hiveext.AgentClusterInstall
	)
	return []kube.Index{
		kube.IndexOf(&clusterv1.Machine{}, ClusterNameField, func(m *clusterv1.Machine) []string { return []string{m.Spec.ClusterName} }),
		kube.IndexOf(&deployment{}, ClusterNameField, func(d *deployment) []string { return []string{d.Spec.ClusterName} }),
		kube.IndexOf(&deployment{}, CapacityField, func(d *deployment) []string {
			if cachedCapacity(d) {
				return []string{Stated}
			}
			return nil
		}),
		kube.IndexOf(&machineSet{}, ClusterNameField, func(s *machineSet) []string { return []string{s.Spec.ClusterName} }),
		kube.IndexOf(&hivev1.ClusterImageSet{}, ImageSetOwnerField, func(s *hivev1.ClusterImageSet) []string {
			return kube.NonEmpty(s.Annotations[facts.OwnerAnnotation])
		}),
		kube.IndexOf(&aiv1beta1.Agent{}, AgentClusterField, ClusterOfAgent),
		kube.IndexOf(&aiv1beta1.Agent{}, ForeignAgentField, ForeignClusterOfAgent),
		kube.IndexOf(&install{}, AdminSecretField, func(i *install) []string { return kube.NonEmpty(facts.AdminKubeconfigOf(i)) }),
		kube.IndexOf(&controlPlane{}, PullSecretField, func(c *controlPlane) []string {
			if ref := c.Spec.Config.PullSecretRef; ref != nil {
				return kube.NonEmpty(ref.Name)
			}
			return nil
		}),
		kube.IndexOf(&controlPlane{}, ConfigMapField, facts.ConfigMapsOf),
		kube.IndexOf(&controlPlane{}, ClaimField, preflight.Claims),
		kube.IndexOf(&controlPlane{}, ImageSetField, func(c *controlPlane) []string {
			if ref := c.Spec.Config.ClusterImageSetRef; ref != nil {
				return kube.NonEmpty(ref.Name)
			}
			return nil
		}),
		kube.IndexOf(&controlPlane{}, InfraTemplateField, func(c *controlPlane) []string {
			var keys []string
			for _, ref := range facts.InfraTemplatesOf(c) {
				keys = append(keys, TemplateKey(ref.Kind, ref.Name))
			}
			return keys
		}),
	}
}

// AllOf returns the index that finds all objects of a kind in a namespace.
func AllOf[T client.Object](object T) kube.Index {
	return kube.IndexOf(object, AllField, func(T) []string { return []string{All} })
}

// ClusterOfAgent names the ClusterDeployment of its own namespace to which an Agent is bound. An Agent that is bound
// across namespaces is no host of a Machine.
func ClusterOfAgent(a *aiv1beta1.Agent) []string {
	ref := a.Spec.ClusterDeploymentName
	if ref == nil || ref.Namespace != a.Namespace {
		return nil
	}
	return []string{ref.Name}
}

// ForeignClusterOfAgent names the ClusterDeployment of another namespace to which an Agent is bound.
func ForeignClusterOfAgent(a *aiv1beta1.Agent) []string {
	ref := a.Spec.ClusterDeploymentName
	if ref == nil || ref.Namespace == a.Namespace {
		return nil
	}
	return []string{client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}.String()}
}

// TemplateKey returns the value of InfraTemplateField for a template.
func TemplateKey(kind, name string) string { return kind + "/" + name }
