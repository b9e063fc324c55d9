package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

// OpenshiftAssistedControlPlaneTemplateSpec holds the template.
type OpenshiftAssistedControlPlaneTemplateSpec struct {
	// template is what a ClusterClass's control planes are made from.
	// +required
	Template OpenshiftAssistedControlPlaneTemplateResource `json:"template,omitempty,omitzero"`
}

// OpenshiftAssistedControlPlaneTemplateResource is what a ClusterClass's control planes are made from.
type OpenshiftAssistedControlPlaneTemplateResource struct {
	// metadata of the control planes.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec of the control planes, without what the topology of the Cluster sets: replicas, version and infrastructureRef.
	// +required
	Spec OpenshiftAssistedControlPlaneTemplateResourceSpec `json:"spec,omitempty,omitzero"`
}

// OpenshiftAssistedControlPlaneTemplateResourceSpec is an OpenshiftAssistedControlPlaneSpec without what the topology of the Cluster sets.
type OpenshiftAssistedControlPlaneTemplateResourceSpec struct {
	// machineTemplate is what the control-plane Machines are made from.
	// +optional
	MachineTemplate OpenshiftAssistedControlPlaneTemplateMachineTemplate `json:"machineTemplate,omitempty,omitzero"`

	// arbiter makes one of the three control-plane Machines an arbiter: a member of etcd on a small host that runs little else, beside two masters. A template of its infra machine
	// that it names is taken as it is: Cluster API clones that of the other Machines only.
	// +optional
	Arbiter *ArbiterSpec `json:"arbiter,omitempty"`

	// fencing makes a cluster of two nodes and nothing else: each powers off the other by its BMC before it goes on alone. The topology of the Cluster has to ask for two
	// replicas.
	// +optional
	Fencing *FencingSpec `json:"fencing,omitempty"`

	// machineNaming gives the Machines other names than <control plane>-<5 characters>.
	// +optional
	MachineNaming MachineNamingSpec `json:"machineNaming,omitempty,omitzero"`

	// openshiftAssistedConfigSpec is the spec of each control-plane Machine's OpenshiftAssistedConfig.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.machineConfigPool)",message="machineConfigPool is for workers: hosts of the control plane belong to the pool master"
	// +kubebuilder:validation:XValidation:rule="!has(self.role)",message="role is set by the control plane provider: set spec.arbiter to make one of the Machines an arbiter"
	OpenshiftAssistedConfigSpec bootstrapv1.OpenshiftAssistedConfigSpec `json:"openshiftAssistedConfigSpec,omitempty,omitzero"`

	// remediation limits how often unhealthy Machines are replaced, which a MachineHealthCheck finds.
	// +optional
	Remediation RemediationSpec `json:"remediation,omitempty,omitzero"`

	// upgrade says how installed clusters are brought to another version.
	// +optional
	Upgrade UpgradeSpec `json:"upgrade,omitempty,omitzero"`

	// kubeconfig states what the published kubeconfigs (Secrets <cluster>-kubeconfig) need in addition to what assisted-service and the cluster give.
	// +optional
	Kubeconfig KubeconfigSpec `json:"kubeconfig,omitempty,omitzero"`

	// config is the installation's configuration.
	// +required
	Config InstallationConfig `json:"config,omitempty,omitzero"`
}

// OpenshiftAssistedControlPlaneTemplateMachineTemplate is what the control-plane Machines are made from.
// +kubebuilder:validation:MinProperties=1
type OpenshiftAssistedControlPlaneTemplateMachineTemplate struct {
	// metadata goes to the Machines, their infra machines and OpenshiftAssistedConfigs.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec goes to the Machines.
	// +optional
	Spec OpenshiftAssistedControlPlaneMachineSettings `json:"spec,omitempty,omitzero"`
}

// OpenshiftAssistedControlPlaneTemplate is what the control planes of a ClusterClass are made from.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=openshiftassistedcontrolplanetemplates,scope=Namespaced,categories=cluster-api,shortName=oacpt
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type OpenshiftAssistedControlPlaneTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec holds the template.
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
