package metal3

import (
	"cmp"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// HostKind is the kind of a Host.
const HostKind = "BareMetalHost"

// Annotations of a BareMetalHost for the installation of its host. They are those of assisted-service's own
// agent controller for BareMetalHosts (internal/controller/controllers/bmh_agent_controller.go), which
// siteconfig and ZTP pipelines write.
const (
	settingsPrefix = "bmac.agent-install.openshift.io"
	// HostnameAnnotation holds the name of the host and its Node.
	HostnameAnnotation = settingsPrefix + "/hostname"
	// RoleAnnotation holds the intended role of the host: master, arbiter, worker or auto-assign.
	RoleAnnotation = settingsPrefix + "/role"
	// InstallerArgsAnnotation holds a JSON array of arguments of coreos-installer.
	InstallerArgsAnnotation = settingsPrefix + "/installer-args"
	// IgnitionAnnotation holds a JSON ignition for the installed host.
	IgnitionAnnotation = settingsPrefix + "/ignition-config-overrides"
	// FencingCredentialsAnnotation names the Secret with which the other node of a two-node cluster fences
	// the host. Its keys are address, username, password, certificateVerification.
	FencingCredentialsAnnotation = settingsPrefix + "/fencing-credentials-secret-name"
	// NodeLabelAnnotationPrefix is followed by the key of a label of the Node. The value of the annotation is
	// the value of the label.
	NodeLabelAnnotationPrefix = settingsPrefix + ".node-label."
	// AgentLabelAnnotationPrefix is followed by the key of a label of the Agent. The value of the annotation is
	// the value of the label.
	AgentLabelAnnotationPrefix = settingsPrefix + ".agent-label."
)

// Settings returns the annotations of a BareMetalHost for its installation; nil if there are none.
func Settings(annotations map[string]string) map[string]string {
	var settings map[string]string
	for key, value := range annotations {
		switch {
		case key == HostnameAnnotation,
			key == RoleAnnotation,
			key == InstallerArgsAnnotation,
			key == IgnitionAnnotation,
			key == FencingCredentialsAnnotation,
			strings.HasPrefix(key, NodeLabelAnnotationPrefix),
			strings.HasPrefix(key, AgentLabelAnnotationPrefix):
			if settings == nil {
				settings = map[string]string{}
			}
			settings[key] = value
		}
	}
	return settings
}

// Host is a BareMetalHost reduced to the fields that are read. Clients decode BareMetalHosts into this type,
// because a hub has many unrelated BareMetalHosts and the API's own type takes four times as much memory.
// Never write a Host: it would remove all other fields.
//
// +kubebuilder:object:generate=true
// +kubebuilder:object:root=true
type Host struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   HostSpec   `json:"spec,omitempty"`
	Status HostStatus `json:"status,omitempty"`
}

// HostSpec is the desired state of a host, set by the user, and by CAPM3 for its Metal3Machine.
//
// +kubebuilder:object:generate=true
type HostSpec struct {
	BMC             BMC                        `json:"bmc,omitempty"`
	BootMACAddress  string                     `json:"bootMACAddress,omitempty"`
	RootDeviceHints *metal3api.RootDeviceHints `json:"rootDeviceHints,omitempty"`
	ConsumerRef     *Consumer                  `json:"consumerRef,omitempty"`
	Image           *Image                     `json:"image,omitempty"`
	// ExternallyProvisioned is true for a server that was installed by another tool.
	ExternallyProvisioned bool `json:"externallyProvisioned,omitempty"`
}

// BMC is a management controller.
type BMC struct {
	Address                        string `json:"address,omitempty"`
	CredentialsName                string `json:"credentialsName,omitempty"`
	DisableCertificateVerification bool   `json:"disableCertificateVerification,omitempty"`
}

// Consumer is the object that a host is given to.
type Consumer struct {
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// Image is the image that a host boots.
type Image struct {
	URL string `json:"url,omitempty"`
}

// HostStatus is the state of a host as the Bare Metal Operator observed it.
//
// +kubebuilder:object:generate=true
type HostStatus struct {
	HardwareDetails *Hardware    `json:"hardware,omitempty"`
	Provisioning    Provisioning `json:"provisioning,omitempty"`
	// History records the operations of the Bare Metal Operator on the host.
	History History `json:"operationHistory,omitempty"`
	// PoweredOn is the power state of the host when the Bare Metal Operator last read it.
	PoweredOn  bool        `json:"poweredOn,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
	// ErrorType is the type of the error in ErrorMessage. Both are empty if there is none.
	ErrorType    string `json:"errorType,omitempty"`
	ErrorMessage string `json:"errorMessage,omitempty"`
}

// Condition is a condition of a host. The Bare Metal Operator writes conditions since its version 0.13.
type Condition struct {
	Type   string `json:"type,omitempty"`
	Status string `json:"status,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Provisioning is the provisioning state of a host.
type Provisioning struct {
	State string `json:"state,omitempty"`
}

// StateProvisioned is the state of a host that runs its image.
const StateProvisioned = string(metal3api.StateProvisioned)

// StateOf returns the provisioning state of a host for messages.
func StateOf(host *Host) string { return cmp.Or(host.Status.Provisioning.State, "not registered") }

// History records when the Bare Metal Operator registered and provisioned a host.
type History struct {
	Register  Operation `json:"register,omitempty"`
	Provision Operation `json:"provision,omitempty"`
}

// Operation is the start and the end of a step of the Bare Metal Operator.
type Operation struct {
	// Start is a time in the format of the API server; empty if the step has not started.
	Start string `json:"start,omitempty"`
	// End is empty while the step lasts.
	End string `json:"end,omitempty"`
}

// Hardware is the result of the inspection.
//
// +kubebuilder:object:generate=true
type Hardware struct {
	SystemVendor Vendor `json:"systemVendor,omitempty"`
	NIC          []NIC  `json:"nics,omitempty"`
	CPU          CPU    `json:"cpu,omitempty"`
	RAMMebibytes int    `json:"ramMebibytes,omitempty"`
	Storage      []Disk `json:"storage,omitempty"`
}

// CPU describes the processors of a host.
type CPU struct {
	Count int `json:"count,omitempty"`
}

// Disk is a disk, or another kind of storage.
type Disk struct {
	SizeBytes int64 `json:"sizeBytes,omitempty"`
}

// Vendor holds data from the vendor of a system.
type Vendor struct {
	SerialNumber string `json:"serialNumber,omitempty"`
}

// NIC is a network interface. An interface with several addresses is listed several times.
type NIC struct {
	MAC string `json:"mac,omitempty"`
}

// HostList is a list of hosts.
//
// +kubebuilder:object:generate=true
// +kubebuilder:object:root=true
type HostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Host `json:"items"`
}

// AddToScheme registers Host as the type of BareMetalHosts, and the type of their HardwareData.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(metal3api.GroupVersion.WithKind(HostKind), &Host{})
	scheme.AddKnownTypeWithName(metal3api.GroupVersion.WithKind(HostKind+"List"), &HostList{})
	scheme.AddKnownTypeWithName(metal3api.GroupVersion.WithKind(HardwareDataKind), &HardwareData{})
	scheme.AddKnownTypeWithName(metal3api.GroupVersion.WithKind(HardwareDataKind+"List"), &HardwareDataList{})
	metav1.AddToGroupVersion(scheme, metal3api.GroupVersion)
	return nil
}
