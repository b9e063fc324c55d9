package desired

import (
	"maps"
	"net/netip"

	"github.com/blang/semver/v4"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

const (
	// Networks of a cluster that says nothing else: the defaults of OpenShift's installer.
	defaultClusterNetwork = "10.128.0.0/14"
	defaultServiceNetwork = "172.30.0.0/16"

	// Prefixes of the part of the cluster network that a Node gets: the defaults of OpenShift's installer.
	hostPrefixIPv4 = 23
	hostPrefixIPv6 = 64
)

// AgentClusterInstall is the wanted AgentClusterInstall of a release, which the ClusterImageSet names. It fails where the user's install-config override is no JSON object.
//
// userManagedNetworking is always stated, coherent with the platform: the admission webhook of assisted-service would else persist a value of
// its own, which collides with a platform that is changed later.
func AgentClusterInstall(f *facts.Facts, imageSet string, version semver.Version) (*hiveext.AgentClusterInstall, error) {
	cp, config := f.ControlPlane, &f.ControlPlane.Spec.Config
	overrides, err := installConfigOverrides(config.Capabilities, onBareMetal(config), version, cp.Annotations[controlplanev1.InstallConfigOverrideAnnotation], config.InstallConfigOverride)
	if err != nil {
		return nil, err
	}
	aci := agentClusterInstall(f, imageSet)
	aci.Annotations = map[string]string{assisted.InstallConfigOverridesAnnotation: overrides}
	aci.Spec.HoldInstallation = ptr.Deref(config.HoldInstallation, false)
	for _, ref := range config.ManifestsConfigMapRefs {
		aci.Spec.ManifestsConfigMapRefs = append(aci.Spec.ManifestsConfigMapRefs, hiveext.ManifestsConfigMapReference{Name: ref.Name})
	}
	return aci, nil
}

// agentClusterInstall is what an AgentClusterInstall says of a cluster, whether it is to be installed or was.
func agentClusterInstall(f *facts.Facts, imageSet string) *hiveext.AgentClusterInstall {
	cp, config := f.ControlPlane, &f.ControlPlane.Spec.Config
	aci := &hiveext.AgentClusterInstall{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cp.Namespace,
			Name:      cp.Name,
			Labels:    map[string]string{hiveext.ClusterConsumerLabel: assisted.Consumer},
		},
		Spec: hiveext.AgentClusterInstallSpec{
			ImageSetRef:          &hivev1.ClusterImageSetReference{Name: imageSet},
			ClusterDeploymentRef: corev1.LocalObjectReference{Name: cp.Name},
			Networking:           networking(f),
			PlatformType:         "None",
			APIVIPs:              config.APIVIPs,
			IngressVIPs:          config.IngressVIPs,
			ProvisionRequirements: hiveext.ProvisionRequirements{
				ControlPlaneAgents: int(f.Replicas()), // 1 makes a single-node cluster
				WorkerAgents:       int(f.WorkerReplicas()),
			},
			SSHPublicKey:       config.SSHAuthorizedKey,
			MastersSchedulable: ptr.Deref(config.MastersSchedulable, false),
		},
	}
	maps.Copy(aci.Labels, f.Labels())
	if onBareMetal(config) {
		aci.Spec.PlatformType = "BareMetal"
	}
	addOptions(aci, config)
	return aci
}

// onBareMetal tells whether the platform is baremetal: the cluster has virtual addresses. Without them it is none.
func onBareMetal(config *controlplanev1.InstallationConfig) bool {
	return len(config.APIVIPs) > 0 && len(config.IngressVIPs) > 0
}

func addOptions(aci *hiveext.AgentClusterInstall, config *controlplanev1.InstallationConfig) {
	if lb := config.LoadBalancer; lb != nil && lb.Type != "" {
		aci.Spec.LoadBalancer = &hiveext.LoadBalancer{Type: hiveext.LoadBalancerType(lb.Type)}
	}
	if ref := config.ImageRegistryRef; ref != nil && ref.Name != "" {
		aci.Spec.MirrorRegistryRef = &hiveext.MirrorRegistryConfigMapReference{Name: ref.Name, Namespace: aci.Namespace}
	}
	if p := config.Proxy; p != nil {
		aci.Spec.Proxy = &hiveext.Proxy{HTTPProxy: p.HTTPProxy, HTTPSProxy: p.HTTPSProxy, NoProxy: p.NoProxy}
	}
	if d := config.DiskEncryption; d != nil {
		aci.Spec.DiskEncryption = &hiveext.DiskEncryption{EnableOn: ptr.To(d.EnableOn), Mode: ptr.To(d.Mode), TangServers: d.TangServers}
	}
}

func networking(f *facts.Facts) hiveext.Networking {
	config, cluster := &f.ControlPlane.Spec.Config, &f.Cluster.Spec.ClusterNetwork
	n := hiveext.Networking{
		NetworkType:           config.NetworkType,
		UserManagedNetworking: ptr.To(!onBareMetal(config)),
		ServiceNetwork:        cluster.Services.CIDRBlocks,
	}
	if len(n.ServiceNetwork) == 0 {
		n.ServiceNetwork = []string{defaultServiceNetwork}
	}
	pods := cluster.Pods.CIDRBlocks
	if len(pods) == 0 {
		pods = []string{defaultClusterNetwork}
	}
	for _, cidr := range pods {
		n.ClusterNetwork = append(n.ClusterNetwork, hiveext.ClusterNetworkEntry{CIDR: cidr, HostPrefix: hostPrefix(cidr)})
	}
	for _, cidr := range config.MachineNetwork {
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
