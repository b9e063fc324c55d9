package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

// OpenshiftAssistedControlPlaneTemplateSpec contains the template.
type OpenshiftAssistedControlPlaneTemplateSpec struct {
	// template is the template of the control planes of a ClusterClass.
	// +required
	Template OpenshiftAssistedControlPlaneTemplateResource `json:"template,omitempty,omitzero"`
}

// OpenshiftAssistedControlPlaneTemplateResource is the template of the control planes of a ClusterClass.
type OpenshiftAssistedControlPlaneTemplateResource struct {
	// metadata contains labels and annotations of the control planes.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is the spec of the control planes, without the fields that the topology of the Cluster sets: replicas,
	// version and infrastructureRef.
	// +required
	Spec OpenshiftAssistedControlPlaneTemplateResourceSpec `json:"spec,omitempty,omitzero"`
}

// OpenshiftAssistedControlPlaneTemplateResourceSpec is an OpenshiftAssistedControlPlaneSpec without the fields that the
// topology of the Cluster sets.
type OpenshiftAssistedControlPlaneTemplateResourceSpec struct {
	// distributionVersion is the OpenShift or OKD release of the whole cluster, such as 4.19.10. When omitted, a patch
	// of the ClusterClass must set it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^v?[0-9]+[.][0-9]+[.][0-9]+(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$')",message="distributionVersion must be a full release such as 4.19.10"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^v?[0-3][.]')",message="distributionVersion must be an OpenShift or OKD release such as 4.19.10: the Kubernetes version belongs into version"
	DistributionVersion string `json:"distributionVersion,omitempty"`

	// machineTemplate is the template of the control-plane Machines.
	// +optional
	MachineTemplate OpenshiftAssistedControlPlaneTemplateMachineTemplate `json:"machineTemplate,omitempty,omitzero"`

	// arbiter makes one of the three control-plane Machines an arbiter: a member of etcd on a small host that runs few
	// other components. The other two Machines are masters. If arbiter names a template of its infra machine, Cluster
	// API does not clone it: it clones only the template of the other Machines.
	// +optional
	Arbiter *ArbiterSpec `json:"arbiter,omitempty"`

	// fencing makes a cluster of two nodes without other hosts. Before a node continues alone, it powers off the other
	// node through the BMC of that node. The topology of the Cluster must set two replicas.
	// +optional
	Fencing *FencingSpec `json:"fencing,omitempty"`

	// machineNaming defines the names of the Machines. When omitted, a name is <control plane>-<5 characters>.
	// +optional
	MachineNaming MachineNamingSpec `json:"machineNaming,omitempty,omitzero"`

	// openshiftAssistedConfigSpec is the spec of the OpenshiftAssistedConfig of each control-plane Machine.
	// machineConfigPool and role are not allowed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.machineConfigPool)",message="machineConfigPool is for workers: remove it, hosts of the control plane belong to the pool master"
	// +kubebuilder:validation:XValidation:rule="!has(self.role)",message="role is set by the control plane provider: remove it, and set spec.arbiter to make one of the Machines an arbiter"
	OpenshiftAssistedConfigSpec bootstrapv1.OpenshiftAssistedConfigSpec `json:"openshiftAssistedConfigSpec,omitempty,omitzero"`

	// remediation limits how often unhealthy Machines are replaced. A MachineHealthCheck detects unhealthy Machines.
	// +optional
	Remediation RemediationSpec `json:"remediation,omitempty,omitzero"`

	// upgrade defines how installed clusters are upgraded to another release.
	// +optional
	Upgrade UpgradeSpec `json:"upgrade,omitempty,omitzero"`

	// kubeconfig defines additions to the published kubeconfigs (Secrets <cluster>-kubeconfig).
	// +optional
	Kubeconfig KubeconfigSpec `json:"kubeconfig,omitempty,omitzero"`

	// config is the configuration of the installation.
	// +required
	Config InstallationConfig `json:"config,omitempty,omitzero"`
}

// OpenshiftAssistedControlPlaneTemplateMachineTemplate is the template of the control-plane Machines.
// +kubebuilder:validation:MinProperties=1
type OpenshiftAssistedControlPlaneTemplateMachineTemplate struct {
	// metadata contains labels and annotations of the Machines, their infra machines and OpenshiftAssistedConfigs.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the spec of the Machines.
	// +optional
	Spec OpenshiftAssistedControlPlaneMachineSettings `json:"spec,omitempty,omitzero"`
}

// OpenshiftAssistedControlPlaneTemplate is the template from which the control planes of a ClusterClass are created.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=openshiftassistedcontrolplanetemplates,scope=Namespaced,categories=cluster-api,shortName=oacpt
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type OpenshiftAssistedControlPlaneTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec contains the template.
	// +required
	Spec OpenshiftAssistedControlPlaneTemplateSpec `json:"spec,omitempty,omitzero"`
}

// OpenshiftAssistedControlPlaneTemplateList is a list of OpenshiftAssistedControlPlaneTemplate.
// +kubebuilder:object:root=true
type OpenshiftAssistedControlPlaneTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OpenshiftAssistedControlPlaneTemplate `json:"items"`
}
