package registration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// AgentClusterInstall returns the desired AgentClusterInstall for a release with the given ClusterImageSet.
// It fails if the user's install-config override is not a JSON object, or if no cluster can be installed with
// the networks, see [invalidNetworks].
//
// The field userManagedNetworking is always set, consistent with the platform. Otherwise the admission
// webhook of assisted-service would persist its own value, which conflicts with a later change of the
// platform.
func AgentClusterInstall(f *facts.Facts, imageSet string, version semver.Version) (*hiveext.AgentClusterInstall, error) {
	cp, config := f.ControlPlane, &f.ControlPlane.Spec.Config
	overrides, err := installConfigOverrides(
		config,
		version,
		cp.Annotations[controlplanev1.InstallConfigOverrideAnnotation],
		config.InstallConfigOverride,
	)
	if err != nil {
		return nil, fmt.Errorf(
			"%w: correct config.installConfigOverride or the annotation %s",
			err,
			controlplanev1.InstallConfigOverrideAnnotation,
		)
	}
	aci := agentClusterInstall(f, imageSet)
	if err := invalidNetworks(f, &aci.Spec.Networking); err != nil {
		return nil, err
	}
	setIgnoredValidations(aci, config.IgnoredValidations)
	if len(config.NTPSources) > 0 {
		metav1.SetMetaDataAnnotation(&aci.ObjectMeta, assisted.NTPSourcesAnnotation, strings.Join(config.NTPSources, ","))
	}
	if overrides != "" {
		metav1.SetMetaDataAnnotation(&aci.ObjectMeta, assisted.InstallConfigOverridesAnnotation, overrides)
	}
	// assisted-service starts when the desired number of hosts is approved, in any namespace
	// (findAgentsByAgentClusterInstall in its clusterdeployments_controller.go).
	aci.Spec.HoldInstallation = ptr.Deref(config.HoldInstallation, false) || len(f.ForeignAgents) > 0
	for _, ref := range config.ManifestsConfigMapRefs {
		aci.Spec.ManifestsConfigMapRefs = append(aci.Spec.ManifestsConfigMapRefs, hiveext.ManifestsConfigMapReference{Name: ref.Name})
	}
	return aci, nil
}

// setIgnoredValidations sets the annotations for the validations that the user ignores.
func setIgnoredValidations(aci *hiveext.AgentClusterInstall, ignored *controlplanev1.IgnoredValidations) {
	if ignored == nil {
		return
	}
	for key, validations := range map[string][]string{
		assisted.IgnoredClusterValidationsAnnotation: ignored.Cluster, assisted.IgnoredHostValidationsAnnotation: ignored.Hosts,
	} {
		if len(validations) > 0 {
			metav1.SetMetaDataAnnotation(&aci.ObjectMeta, key, strings.Join(slices.Sorted(slices.Values(validations)), ","))
		}
	}
}

// agentClusterInstall returns the fields that describe a cluster before and after its installation.
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
			PlatformType:         hiveext.NonePlatformType,
			APIVIPs:              config.APIVIPs,
			IngressVIPs:          config.IngressVIPs,
			ProvisionRequirements: hiveext.ProvisionRequirements{
				ControlPlaneAgents: int(f.Replicas() - f.Arbiters()), // 1 makes a single-node cluster
				ArbiterAgents:      int(f.Arbiters()),
				WorkerAgents:       int(f.WorkerReplicas()),
			},
			SSHPublicKey:       config.SSHAuthorizedKey,
			MastersSchedulable: ptr.Deref(config.MastersSchedulable, false),
		},
	}
	f.Owner().Mark(aci)
	switch external := config.ExternalPlatform; {
	case onBareMetal(config):
		aci.Spec.PlatformType = hiveext.BareMetalPlatformType
	case external != nil:
		aci.Spec.PlatformType = hiveext.ExternalPlatformType
		aci.Spec.ExternalPlatformSpec = &hiveext.ExternalPlatformSpec{
			PlatformName:           external.Name,
			CloudControllerManager: hiveext.CloudControllerManager(external.CloudControllerManager),
		}
	}
	addOptions(aci, config)
	if f.Arbiters() > 0 {
		metav1.SetMetaDataAnnotation(&aci.ObjectMeta, bootstrapv1.ClusterWithArbiterAnnotation, "")
	}
	if h := config.Hyperthreading; h != nil && f.Arbiters() > 0 {
		aci.Spec.Arbiter = &hiveext.AgentMachinePool{Name: hiveext.ArbiterAgentMachinePool, Hyperthreading: hyperthreading(h.ControlPlane)}
	}
	return aci
}

// onBareMetal reports whether the platform is baremetal, for a cluster with virtual addresses. Otherwise it
// is none or external.
func onBareMetal(config *controlplanev1.InstallationConfig) bool {
	return len(config.APIVIPs) > 0 && len(config.IngressVIPs) > 0
}

// userManagedLoadBalancer reports whether a load balancer outside the cluster serves the API and ingress
// addresses.
func userManagedLoadBalancer(config *controlplanev1.InstallationConfig) bool {
	return config.LoadBalancer != nil && config.LoadBalancer.Type == string(hiveext.LoadBalancerTypeUserManaged)
}

func addOptions(aci *hiveext.AgentClusterInstall, config *controlplanev1.InstallationConfig) {
	if lb := config.LoadBalancer; lb != nil && lb.Type != "" {
		aci.Spec.LoadBalancer = &hiveext.LoadBalancer{Type: hiveext.LoadBalancerType(lb.Type)}
	}
	if ref := config.ImageRegistryRef; ref != nil && ref.Name != "" {
		aci.Spec.MirrorRegistryRef = &hiveext.MirrorRegistryConfigMapReference{Name: ref.Name, Namespace: aci.Namespace}
	}
	if h := config.Hyperthreading; h != nil {
		aci.Spec.ControlPlane = &hiveext.AgentMachinePool{Name: hiveext.MasterAgentMachinePool, Hyperthreading: hyperthreading(h.ControlPlane)}
		aci.Spec.Compute = []hiveext.AgentMachinePool{{Name: hiveext.WorkerAgentMachinePool, Hyperthreading: hyperthreading(h.Workers)}}
	}
	if p := config.Proxy; p != nil {
		aci.Spec.Proxy = &hiveext.Proxy{HTTPProxy: p.HTTPProxy, HTTPSProxy: p.HTTPSProxy, NoProxy: p.NoProxy}
	}
	if d := config.DiskEncryption; d != nil {
		aci.Spec.DiskEncryption = &hiveext.DiskEncryption{EnableOn: ptr.To(d.EnableOn), Mode: ptr.To(d.Mode), TangServers: d.TangServers}
	}
}

// hyperthreading returns the mode of a pool. If it is set for one pool it is set for all, because
// assisted-service then disables it for the others.
func hyperthreading(configured string) hiveext.HyperthreadingMode {
	return cmp.Or(hiveext.HyperthreadingMode(configured), hiveext.HyperthreadingEnabled)
}
