package desired

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/joining"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
)

// InfraEnv returns the InfraEnv of the Machine's host for its boot mode. It has no cluster reference: a host is
// bound only after it is identified. It has no owner reference: the finalizer decides what is deleted with an
// InfraEnv.
func InfraEnv(f *facts.Facts) (*aiv1beta1.InfraEnv, error) {
	spec := &f.Config.Spec
	override := f.Config.Annotations[bootstrapv1.DiscoveryIgnitionOverrideAnnotation]
	if override != "" && !json.Valid([]byte(override)) {
		return nil, fmt.Errorf(
			"annotation %s is not valid JSON: write an ignition config of version 3.2.0 or 3.1.0",
			bootstrapv1.DiscoveryIgnitionOverrideAnnotation,
		)
	}
	if _, err := metav1.LabelSelectorAsSelector(spec.NMStateConfigLabelSelector); err != nil {
		return nil, fmt.Errorf("spec.nmStateConfigLabelSelector: %w", err)
	}
	imageType, err := imageType(spec, f.BootMode)
	if err != nil {
		return nil, err
	}
	infraEnv := &aiv1beta1.InfraEnv{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.Config.Namespace,
			Name:      f.Machine.Name,
			Labels: map[string]string{
				clusterv1.ClusterNameLabel:  f.Cluster.Name,
				bootstrapv1.ConfigNameLabel: format.MustFormatValue(f.Config.Name),
			},
		},
		Spec: aiv1beta1.InfraEnvSpec{
			PullSecretRef:          &corev1.LocalObjectReference{Name: f.PullSecretName()},
			AdditionalNTPSources:   spec.AdditionalNTPSources,
			SSHAuthorizedKey:       spec.SSHAuthorizedKey,
			CpuArchitecture:        spec.CPUArchitecture,
			AdditionalTrustBundle:  spec.AdditionalTrustBundle,
			IgnitionConfigOverride: override,
			OSImageVersion:         osImageVersion(f),
			MirrorRegistryRef:      MirrorRegistry(f),
			ImageType:              imageType,
		},
	}
	if f.Cluster.UID != "" {
		infraEnv.Annotations = map[string]string{contract.ClusterUIDAnnotation: string(f.Cluster.UID)}
	}
	if digest := mirrorsDigest(f, infraEnv.Spec.MirrorRegistryRef); digest != "" {
		metav1.SetMetaDataAnnotation(&infraEnv.ObjectMeta, bootstrapv1.MirrorsDigestAnnotation, digest)
	}
	infraEnv.Spec.NTPSources = spec.NTPSources
	if delay := spec.NetworkDiscoveryDelaySeconds; delay != nil {
		infraEnv.Spec.NetworkDiscoveryDelaySeconds = ptr.To(int64(*delay))
	}
	for _, a := range spec.DiscoveryKernelArguments {
		infraEnv.Spec.KernelArguments = append(infraEnv.Spec.KernelArguments, aiv1beta1.KernelArgument{Operation: a.Operation, Value: a.Value})
	}
	if infraEnv.Spec.AgentLabels, err = agentLabels(spec); err != nil {
		return nil, err
	}
	if spec.Proxy != nil {
		infraEnv.Spec.Proxy = &aiv1beta1.Proxy{HTTPProxy: spec.Proxy.HTTPProxy, HTTPSProxy: spec.Proxy.HTTPSProxy, NoProxy: spec.Proxy.NoProxy}
	}
	if spec.NMStateConfigLabelSelector != nil {
		infraEnv.Spec.NMStateConfigLabelSelector = *spec.NMStateConfigLabelSelector.DeepCopy()
	}
	return infraEnv, nil
}

// agentLabels returns the labels of the Agents of the InfraEnv; nil: the config states none.
func agentLabels(spec *bootstrapv1.OpenshiftAssistedConfigSpec) (map[string]string, error) {
	var labels map[string]string
	for _, key := range slices.Sorted(maps.Keys(spec.AgentLabels)) { // sorted, so that the message is stable
		value := string(spec.AgentLabels[key])
		if problem := invalidLabel(key, value); problem != "" {
			return nil, fmt.Errorf("spec.agentLabels: %s", problem)
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
	}
	return labels, nil
}

// imageType returns the image type of the config. The discovery ignition, which replaces an ISO, holds static
// networks only if the ISO would be a full one.
func imageType(spec *bootstrapv1.OpenshiftAssistedConfigSpec, mode bootstrapv1.BootMode) (aiv1beta1.ImageType, error) {
	switch {
	case mode == bootstrapv1.BootModeLiveISO:
		// The default of assisted-service is a minimal image, which needs a download that not every network allows.
		return cmp.Or(aiv1beta1.ImageType(spec.ImageType), aiv1beta1.ImageTypeFullIso), nil
	case len(spec.DiscoveryKernelArguments) > 0:
		return "", fmt.Errorf(
			"spec.discoveryKernelArguments apply to the live ISO, but the host boots in mode %s: remove them, or set spec.bootMode to %s",
			mode,
			bootstrapv1.BootModeLiveISO,
		)
	case ineffectiveFlag(spec.InstallerArguments) != "":
		return "", fmt.Errorf(
			"spec.installerArguments: %s has no effect in boot mode %s, in which OpenShift is installed to the disk that the host runs from: "+
				"remove it, or set spec.bootMode to %s",
			ineffectiveFlag(spec.InstallerArguments),
			mode,
			bootstrapv1.BootModeLiveISO,
		)
	case spec.RootDeviceHints != nil:
		return "", ineffectiveHints(mode)
	}
	return aiv1beta1.ImageTypeFullIso, nil
}

// osImageVersion returns the version of the config. Otherwise it returns the minor version that the cluster
// is installed with or, later, runs. An image that is much older may fail to install the running release. A
// host that may be booting keeps its image.
func osImageVersion(f *facts.Facts) string {
	switch {
	case f.Config.Spec.OSImageVersion != "":
		return f.Config.Spec.OSImageVersion
	case joining.Runs(f) && !joining.FollowsRelease(f) && f.Namesake != nil:
		return f.Namesake.Spec.OSImageVersion
	}
	return assisted.MinorOf(cmp.Or(joining.RunningRelease(f), f.Deployment.Annotations[assisted.OpenShiftVersionAnnotation]))
}

// MirrorRegistry returns the mirror registry of the config, or else that of the cluster.
func MirrorRegistry(f *facts.Facts) *hiveext.MirrorRegistryConfigMapReference {
	if ref := f.Config.Spec.MirrorRegistryRef; ref != nil && ref.Name != "" {
		return &hiveext.MirrorRegistryConfigMapReference{Name: ref.Name, Namespace: f.Config.Namespace}
	}
	switch {
	case f.Install != nil:
		return f.Install.Spec.MirrorRegistryRef
	case f.Namesake != nil: // keep the mirror while the AgentClusterInstall is recreated
		return f.Namesake.Spec.MirrorRegistryRef
	}
	return nil
}

// mirrorsDigest returns the digest of the ConfigMap with the mirrors. While the ConfigMap does not exist, it returns the
// recorded digest of the same reference. If the ConfigMap is recreated with another content, its digest then differs
// from the recorded digest.
func mirrorsDigest(f *facts.Facts, ref *hiveext.MirrorRegistryConfigMapReference) string {
	if f.MirrorsDigest == "" && ref != nil && f.Namesake != nil && equality.Semantic.DeepEqual(ref, f.Namesake.Spec.MirrorRegistryRef) {
		return f.Namesake.Annotations[bootstrapv1.MirrorsDigestAnnotation]
	}
	return f.MirrorsDigest
}
