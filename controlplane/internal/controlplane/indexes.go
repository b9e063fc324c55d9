package controlplane

import (
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/preflight"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// Fields of the indexes of the caches.
const (
	clusterNameField   = "spec.clusterName"
	agentClusterField  = "spec.clusterDeploymentName"
	pullSecretField    = "spec.config.pullSecretRef.name"
	configMapField     = "spec.config.configMaps"
	claimField         = "spec.config.claims"
	foreignAgentField  = "spec.clusterDeploymentName.otherNamespace"
	imageSetField      = "spec.config.clusterImageSetRef.name"
	infraTemplateField = "spec.machineTemplate.spec.infrastructureRef"
	imageSetOwnerField = "metadata.annotations.owner"
	adminSecretField   = "spec.clusterMetadata.adminKubeconfigSecretRef.name"
)

func indexes() []kube.Index {
	type (
		controlPlane = controlplanev1.OpenshiftAssistedControlPlane
		deployment   = clusterv1.MachineDeployment
		machineSet   = clusterv1.MachineSet
		install      = hiveext.AgentClusterInstall
	)
	return []kube.Index{
		kube.IndexOf(&clusterv1.Machine{}, clusterNameField, func(m *clusterv1.Machine) []string { return []string{m.Spec.ClusterName} }),
		kube.IndexOf(&deployment{}, clusterNameField, func(d *deployment) []string { return []string{d.Spec.ClusterName} }),
		kube.IndexOf(&machineSet{}, clusterNameField, func(s *machineSet) []string { return []string{s.Spec.ClusterName} }),
		kube.IndexOf(&hivev1.ClusterImageSet{}, imageSetOwnerField, func(s *hivev1.ClusterImageSet) []string {
			return kube.NonEmpty(s.Annotations[facts.OwnerAnnotation])
		}),
		kube.IndexOf(&aiv1beta1.Agent{}, agentClusterField, clusterOfAgent),
		kube.IndexOf(&aiv1beta1.Agent{}, foreignAgentField, foreignClusterOfAgent),
		kube.IndexOf(&install{}, adminSecretField, func(i *install) []string { return kube.NonEmpty(facts.AdminKubeconfigOf(i)) }),
		kube.IndexOf(&controlPlane{}, pullSecretField, func(c *controlPlane) []string {
			if ref := c.Spec.Config.PullSecretRef; ref != nil {
				return kube.NonEmpty(ref.Name)
			}
			return nil
		}),
		kube.IndexOf(&controlPlane{}, configMapField, facts.ConfigMapsOf),
		kube.IndexOf(&controlPlane{}, claimField, preflight.Claims),
		kube.IndexOf(&controlPlane{}, imageSetField, func(c *controlPlane) []string {
			if ref := c.Spec.Config.ClusterImageSetRef; ref != nil {
				return kube.NonEmpty(ref.Name)
			}
			return nil
		}),
		kube.IndexOf(&controlPlane{}, infraTemplateField, func(c *controlPlane) []string {
			var keys []string
			for _, ref := range facts.InfraTemplatesOf(c) {
				keys = append(keys, templateKey(ref.Kind, ref.Name))
			}
			return keys
		}),
	}
}

// clusterOfAgent names the ClusterDeployment of its own namespace to which an Agent is bound. An Agent that is bound
// across namespaces is no host of a Machine.
func clusterOfAgent(a *aiv1beta1.Agent) []string {
	ref := a.Spec.ClusterDeploymentName
	if ref == nil || ref.Namespace != a.Namespace {
		return nil
	}
	return []string{ref.Name}
}

// foreignClusterOfAgent names the ClusterDeployment of another namespace to which an Agent is bound.
func foreignClusterOfAgent(a *aiv1beta1.Agent) []string {
	ref := a.Spec.ClusterDeploymentName
	if ref == nil || ref.Namespace == a.Namespace {
		return nil
	}
	return []string{client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}.String()}
}

func templateKey(kind, name string) string { return kind + "/" + name }
