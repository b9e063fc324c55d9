package gather

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
)

// kind is a kind that is read.
type kind struct {
	group, name string
	// versions are those that may be served, the preferred first.
	versions []string
	// clusterScoped is true for objects without a namespace. Only those are kept that the objects of the cluster refer to.
	clusterScoped bool
	// metadataOnly is true for a kind with credentials. The API server sends only the metadata of its objects.
	metadataOnly bool
}

func (k kind) version(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.group, Version: version, Kind: k.name}
}

// title names the kind: "Secret", "BareMetalHost.metal3.io".
func (k kind) title() string { return schema.GroupKind{Group: k.group, Kind: k.name}.String() }

// Groups of kinds.
const (
	groupCore           = "cluster.x-k8s.io"
	groupInfrastructure = "infrastructure.cluster.x-k8s.io"
	groupMetal3         = "metal3.io"
	groupAgents         = "agent-install.openshift.io"
	groupInstall        = "extensions.hive.openshift.io"
	groupHive           = "hive.openshift.io"
)

// kindEvent is the kind of events, kindDeployment that of the ClusterDeployments.
const (
	kindEvent      = "Event"
	kindSecret     = "Secret"
	kindDeployment = "ClusterDeployment"
	kindInstall    = "AgentClusterInstall"
	kindInfraEnv   = "InfraEnv"
	kindImageSet   = "ClusterImageSet"
)

// kinds returns the kinds that are read, in the order of the archive.
func kinds() []kind {
	var all []kind
	add := func(group string, versions []string, names ...string) {
		for _, name := range names {
			all = append(all, kind{group: group, versions: versions, name: name})
		}
	}
	add(groupCore, []string{"v1beta2"}, snapshot.KindCluster, snapshot.KindMachine, "MachineSet", "MachineDeployment", "MachinePool",
		"MachineHealthCheck", "MachineDrainRule", "ClusterClass")
	add("controlplane.cluster.x-k8s.io", []string{"v1beta1"}, snapshot.KindControlPlane, snapshot.KindControlPlane+"Template")
	add("bootstrap.cluster.x-k8s.io", []string{"v1beta1"}, snapshot.KindConfig, snapshot.KindConfig+"Template")
	add(groupInfrastructure, []string{"v1beta2", "v1beta1"}, "Metal3Cluster", "Metal3ClusterTemplate", "Metal3Machine",
		"Metal3MachineTemplate", "Metal3Data", "Metal3DataClaim", "Metal3DataTemplate", "Metal3Remediation", "Metal3RemediationTemplate")
	add(groupMetal3, []string{"v1alpha1"}, snapshot.KindHost, "HardwareData", "PreprovisioningImage", "HostFirmwareSettings",
		"HostFirmwareComponents", "HostUpdatePolicy", "FirmwareSchema", "BMCEventSubscription", "DataImage")
	add("ipam.metal3.io", []string{"v1alpha1"}, "IPPool", "IPClaim", "IPAddress")
	add("ipam.cluster.x-k8s.io", []string{"v1beta2", "v1beta1"}, "IPAddressClaim", "IPAddress")
	add("addons.cluster.x-k8s.io", []string{"v1beta2"}, "ClusterResourceSet", "ClusterResourceSetBinding")
	add(groupHive, []string{"v1"}, kindDeployment)
	add(groupInstall, []string{"v1beta1"}, kindInstall)
	add(groupAgents, []string{"v1beta1"}, kindInfraEnv, snapshot.KindAgent, "NMStateConfig", "AgentClassification")
	add("", []string{"v1"}, kindEvent)
	return append(all,
		kind{group: groupHive, versions: []string{"v1"}, name: kindImageSet, clusterScoped: true},
		kind{group: groupAgents, versions: []string{"v1beta1"}, name: "AgentServiceConfig", clusterScoped: true},
		kind{versions: []string{"v1"}, name: kindSecret, metadataOnly: true},
		kind{versions: []string{"v1"}, name: "ConfigMap", metadataOnly: true},
	)
}
