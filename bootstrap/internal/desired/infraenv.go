package desired

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
)

// InfraEnv is what serves the Machine's host. It has no cluster reference: a host is bound only once it is proven to be the Machine's. It has no owner
// reference either: what is deleted with an InfraEnv is for the finalizer to decide. mode is how the host boots.
func InfraEnv(f *facts.Facts, mode bootstrapv1.BootMode) (*assisted.InfraEnv, error) {
	spec := &f.Config.Spec
	override := f.Config.Annotations[bootstrapv1.DiscoveryIgnitionOverrideAnnotation]
	if override != "" && !json.Valid([]byte(override)) {
		return nil, fmt.Errorf("annotation %s is not valid JSON: write an ignition config of version 3.2.0 or 3.1.0", bootstrapv1.DiscoveryIgnitionOverrideAnnotation)
	}
	if _, err := metav1.LabelSelectorAsSelector(spec.NMStateConfigLabelSelector); err != nil {
		return nil, fmt.Errorf("spec.nmStateConfigLabelSelector: %w", err)
	}
	imageType, err := imageType(spec, mode)
	if err != nil {
		return nil, err
	}
	infraEnv := &assisted.InfraEnv{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.Config.Namespace,
			Name:      f.Machine.Name,
			Labels: map[string]string{
				clusterv1.ClusterNameLabel:  f.Cluster.Name,
				bootstrapv1.ConfigNameLabel: format.MustFormatValue(f.Config.Name),
			},
		},
		Spec: assisted.InfraEnvSpec{InfraEnvSpec: aiv1beta1.InfraEnvSpec{
			PullSecretRef:          &corev1.LocalObjectReference{Name: f.PullSecretName()},
			AdditionalNTPSources:   spec.AdditionalNTPSources,
			SSHAuthorizedKey:       spec.SSHAuthorizedKey,
			CpuArchitecture:        spec.CPUArchitecture,
			AdditionalTrustBundle:  spec.AdditionalTrustBundle,
			IgnitionConfigOverride: override,
			OSImageVersion:         osImageVersion(f),
			MirrorRegistryRef:      MirrorRegistry(f),
			ImageType:              imageType,
		}},
	}
	if f.Cluster.UID != "" {
		infraEnv.Annotations = map[string]string{contract.ClusterUIDAnnotation: string(f.Cluster.UID)}
	}
	if f.MirrorsDigest != "" {
		metav1.SetMetaDataAnnotation(&infraEnv.ObjectMeta, bootstrapv1.MirrorsDigestAnnotation, f.MirrorsDigest)
	}
	infraEnv.Spec.NTPSources = spec.NTPSources
	if delay := spec.NetworkDiscoveryDelaySeconds; delay != nil {
		infraEnv.Spec.NetworkDiscoveryDelaySeconds = ptr.To(int64(*delay))
	}
	for _, a := range spec.DiscoveryKernelArguments {
		infraEnv.Spec.KernelArguments = append(infraEnv.Spec.KernelArguments, aiv1beta1.KernelArgument{Operation: a.Operation, Value: a.Value})
	}
	for _, key := range slices.Sorted(maps.Keys(spec.AgentLabels)) { // of several problems always the same is told
		value := string(spec.AgentLabels[key])
		if problem := notALabel(key, value); problem != "" {
			return nil, fmt.Errorf("spec.agentLabels: %s", problem)
		}
		if infraEnv.Spec.AgentLabels == nil {
			infraEnv.Spec.AgentLabels = map[string]string{}
		}
		infraEnv.Spec.AgentLabels[key] = value
	}
	if spec.Proxy != nil {
		infraEnv.Spec.Proxy = &aiv1beta1.Proxy{HTTPProxy: spec.Proxy.HTTPProxy, HTTPSProxy: spec.Proxy.HTTPSProxy, NoProxy: spec.Proxy.NoProxy}
	}
	if spec.NMStateConfigLabelSelector != nil {
		infraEnv.Spec.NMStateConfigLabelSelector = *spec.NMStateConfigLabelSelector.DeepCopy()
	}
	return infraEnv, nil
}

// imageType is the config's own. The discovery ignition that takes the place of an ISO holds static networks only where the ISO would be a full one.
func imageType(spec *bootstrapv1.OpenshiftAssistedConfigSpec, mode bootstrapv1.BootMode) (models.ImageType, error) {
	switch {
	case mode == bootstrapv1.BootModeLiveISO: // assisted-service's own default is a minimal one, which not each network has the rest for
		return cmp.Or(models.ImageType(spec.ImageType), models.ImageTypeFullIso), nil
	case len(spec.DiscoveryKernelArguments) > 0:
		return "", fmt.Errorf("spec.discoveryKernelArguments are those of the live ISO, but the host boots in mode %s: remove them, or set spec.bootMode to %s", mode, bootstrapv1.BootModeLiveISO)
	case ofCoreosInstaller(spec.InstallerArguments) != "":
		return "", fmt.Errorf("spec.installerArguments: %s has no effect in boot mode %s, in which OpenShift is installed to the disk that the host runs from: remove it, or set spec.bootMode to %s",
			ofCoreosInstaller(spec.InstallerArguments), mode, bootstrapv1.BootModeLiveISO)
	case spec.RootDeviceHints != nil:
		return "", hintsChooseNothing(mode)
	}
	return models.ImageTypeFullIso, nil
}

// osImageVersion is the config's own, else the minor version that the cluster is installed with or, later, runs: an image that is much older may fail to install the
// running release. A host that may be booting keeps its image.
func osImageVersion(f *facts.Facts) string {
	switch {
	case f.Config.Spec.OSImageVersion != "":
		return f.Config.Spec.OSImageVersion
	case f.Runs() && !f.FollowsRelease() && f.Namesake != nil:
		return f.Namesake.Spec.OSImageVersion
	}
	return assisted.MinorOf(cmp.Or(f.RunningRelease, f.Deployment.Annotations[assisted.OpenShiftVersionAnnotation]))
}

// MirrorRegistry is the config's own, else the cluster's.
func MirrorRegistry(f *facts.Facts) *hiveext.MirrorRegistryConfigMapReference {
	if ref := f.Config.Spec.MirrorRegistryRef; ref != nil && ref.Name != "" {
		return &hiveext.MirrorRegistryConfigMapReference{Name: ref.Name, Namespace: f.Config.Namespace}
	}
	switch {
	case f.Install != nil:
		return f.Install.Spec.MirrorRegistryRef
	case f.Namesake != nil: // it is absent while the cluster is registered again, which says nothing about mirrors
		return f.Namesake.Spec.MirrorRegistryRef
	}
	return nil
}
