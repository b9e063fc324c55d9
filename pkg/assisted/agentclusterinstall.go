package assisted

import (
	"net/netip"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// InstallConfigOverridesAnnotation holds, on an AgentClusterInstall, a JSON object that is merged into the install-config.
	InstallConfigOverridesAnnotation = "agent-install.openshift.io/install-config-overrides"

	// Consumer is the value of the label with which assisted-service tags the cluster in its statistics.
	Consumer = "OpenshiftAssistedControlPlane"

	// Networks of a cluster that says nothing else: the defaults of OpenShift's installer.
	defaultClusterNetwork = "10.128.0.0/14"
	defaultServiceNetwork = "172.30.0.0/16"

	// Prefixes of the part of the cluster network that a Node gets: the defaults of OpenShift's installer.
	hostPrefixIPv4 = 23
	hostPrefixIPv6 = 64
)

// Proxy is an HTTP proxy of the installed cluster.
type Proxy struct{ HTTP, HTTPS, NoProxy string }

// DiskEncryption encrypts installation disks.
type DiskEncryption struct{ EnableOn, Mode, TangServers string }

// AgentClusterInstallInput is what an AgentClusterInstall is made from.
type AgentClusterInstallInput struct {
	Namespace, Name string
	Labels          map[string]string
	// ImageSet names the ClusterImageSet of the release.
	ImageSet string

	// ControlPlaneAgents is the number of control-plane hosts; 1 makes a single-node cluster.
	ControlPlaneAgents int32
	// WorkerAgents is the number of workers that are installed together with the control plane.
	WorkerAgents int32

	// APIVIPs and IngressVIPs make the platform baremetal; without them it is none.
	APIVIPs, IngressVIPs []string
	// PodNetworks, ServiceNetworks and MachineNetworks are CIDRs. Without the first two, OpenShift's defaults are taken.
	PodNetworks, ServiceNetworks, MachineNetworks []string
	// NetworkType is the network plug-in. Empty: the release's default.
	NetworkType string
	// LoadBalancerType is ClusterManaged, UserManaged or empty.
	LoadBalancerType string

	SSHPublicKey       string
	Proxy              *Proxy
	DiskEncryption     *DiskEncryption
	MastersSchedulable bool
	HoldInstallation   bool
	// Manifests name ConfigMaps of further manifests, MirrorRegistry one of registry mirrors; both in the same namespace.
	Manifests      []string
	MirrorRegistry string
	// InstallConfigOverrides is a JSON object, or empty.
	InstallConfigOverrides string
}

// OnBareMetal tells whether the platform is baremetal: the cluster has virtual addresses.
func (in *AgentClusterInstallInput) OnBareMetal() bool {
	return len(in.APIVIPs) > 0 && len(in.IngressVIPs) > 0
}

// AgentClusterInstall returns the wanted AgentClusterInstall.
//
// userManagedNetworking is always stated, coherent with the platform: the admission webhook of assisted-service would else persist a value of
// its own, which collides with a platform that is changed later.
func AgentClusterInstall(in AgentClusterInstallInput) *hiveext.AgentClusterInstall {
	aci := &hiveext.AgentClusterInstall{
		ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: in.Name, Labels: map[string]string{hiveext.ClusterConsumerLabel: Consumer}},
		Spec: hiveext.AgentClusterInstallSpec{
			ImageSetRef:          &hivev1.ClusterImageSetReference{Name: in.ImageSet},
			ClusterDeploymentRef: corev1.LocalObjectReference{Name: in.Name},
			Networking:           networking(&in),
			PlatformType:         "None",
			APIVIPs:              in.APIVIPs,
			IngressVIPs:          in.IngressVIPs,
			ProvisionRequirements: hiveext.ProvisionRequirements{
				ControlPlaneAgents: int(in.ControlPlaneAgents),
				WorkerAgents:       int(in.WorkerAgents),
			},
			SSHPublicKey:       in.SSHPublicKey,
			HoldInstallation:   in.HoldInstallation,
			MastersSchedulable: in.MastersSchedulable,
		},
	}
	for key, value := range in.Labels {
		aci.Labels[key] = value
	}
	if in.OnBareMetal() {
		aci.Spec.PlatformType = "BareMetal"
	}
	if in.InstallConfigOverrides != "" {
		aci.Annotations = map[string]string{InstallConfigOverridesAnnotation: in.InstallConfigOverrides}
	}
	for _, name := range in.Manifests {
		aci.Spec.ManifestsConfigMapRefs = append(aci.Spec.ManifestsConfigMapRefs, hiveext.ManifestsConfigMapReference{Name: name})
	}
	addOptions(aci, &in)
	return aci
}

func addOptions(aci *hiveext.AgentClusterInstall, in *AgentClusterInstallInput) {
	if in.LoadBalancerType != "" {
		aci.Spec.LoadBalancer = &hiveext.LoadBalancer{Type: hiveext.LoadBalancerType(in.LoadBalancerType)}
	}
	if in.MirrorRegistry != "" {
		aci.Spec.MirrorRegistryRef = &hiveext.MirrorRegistryConfigMapReference{Name: in.MirrorRegistry, Namespace: in.Namespace}
	}
	if p := in.Proxy; p != nil {
		aci.Spec.Proxy = &hiveext.Proxy{HTTPProxy: p.HTTP, HTTPSProxy: p.HTTPS, NoProxy: p.NoProxy}
	}
	if d := in.DiskEncryption; d != nil {
		aci.Spec.DiskEncryption = &hiveext.DiskEncryption{EnableOn: ptr.To(d.EnableOn), Mode: ptr.To(d.Mode), TangServers: d.TangServers}
	}
}

func networking(in *AgentClusterInstallInput) hiveext.Networking {
	n := hiveext.Networking{
		NetworkType:           in.NetworkType,
		UserManagedNetworking: ptr.To(!in.OnBareMetal()),
		ServiceNetwork:        in.ServiceNetworks,
	}
	if len(n.ServiceNetwork) == 0 {
		n.ServiceNetwork = []string{defaultServiceNetwork}
	}
	pods := in.PodNetworks
	if len(pods) == 0 {
		pods = []string{defaultClusterNetwork}
	}
	for _, cidr := range pods {
		n.ClusterNetwork = append(n.ClusterNetwork, hiveext.ClusterNetworkEntry{CIDR: cidr, HostPrefix: hostPrefix(cidr)})
	}
	for _, cidr := range in.MachineNetworks {
		n.MachineNetwork = append(n.MachineNetwork, hiveext.MachineNetworkEntry{CIDR: cidr})
	}
	return n
}

// hostPrefix is the size of a Node's part of the network: the installer's default, or the whole of a network that is smaller.
func hostPrefix(cidr string) int32 {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return hostPrefixIPv4
	}
	if prefix.Addr().Is6() {
		return int32(max(hostPrefixIPv6, prefix.Bits())) //nolint:gosec // at most 128
	}
	return int32(max(hostPrefixIPv4, prefix.Bits())) //nolint:gosec // at most 32
}
