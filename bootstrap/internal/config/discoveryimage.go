package config

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// prerequisites waits for what others make.
func (r *Reconciler) prerequisites(_ context.Context, s *scope) (bool, error) {
	const stage = bootstrapv1.DiscoveryImageReadyCondition
	switch {
	case s.Machine == nil && ownedByMachinePool(s.Config):
		return s.wait(stage, bootstrapv1.MachinePoolNotSupportedReason, "a MachinePool cannot use an OpenshiftAssistedConfig: use a MachineDeployment")
	case s.Machine == nil:
		return s.wait(stage, bootstrapv1.WaitingForMachineReason, "waiting for a Machine whose spec.bootstrap.configRef is this object")
	case s.Cluster == nil:
		return s.wait(stage, bootstrapv1.WaitingForClusterInfrastructureReason, "waiting for Cluster %s", s.Machine.Spec.ClusterName)
	case !ptr.Deref(s.Cluster.Status.Initialization.InfrastructureProvisioned, false):
		return s.wait(stage, bootstrapv1.WaitingForClusterInfrastructureReason, "waiting for the infrastructure of Cluster %s to be provisioned", s.Cluster.Name)
	case s.Deployment == nil:
		return s.wait(stage, bootstrapv1.WaitingForClusterDeploymentReason,
			"waiting for ClusterDeployment %s, which the control plane provider makes", s.Cluster.Spec.ControlPlaneRef.Name)
	case s.InfraMachineFailure != nil:
		_, _ = s.wait(stage, bootstrapv1.WaitingForInfraMachineReason, "cannot read %s %s: %s",
			s.Machine.Spec.InfrastructureRef.Kind, s.Machine.Spec.InfrastructureRef.Name, s.InfraMachineFailure)
		return false, s.InfraMachineFailure
	case s.InfraMachine == nil:
		ref := s.Machine.Spec.InfrastructureRef
		return s.wait(stage, bootstrapv1.WaitingForInfraMachineReason, "waiting for %s %s", ref.Kind, ref.Name)
	}
	return true, nil
}

func ownedByMachinePool(config *bootstrapv1.OpenshiftAssistedConfig) bool {
	return slices.ContainsFunc(config.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "MachinePool" })
}

// discoveryImage keeps the InfraEnv in the desired state until a host has booted from it, and waits for its image.
func (r *Reconciler) discoveryImage(ctx context.Context, s *scope) (bool, error) {
	const stage = bootstrapv1.DiscoveryImageReadyCondition
	if s.Namesake != nil && s.Namesake.Labels[bootstrapv1.ConfigNameLabel] != format.MustFormatValue(s.Config.Name) {
		return s.wait(stage, bootstrapv1.InfraEnvNotOursReason,
			"InfraEnv %s exists and does not belong to this object: delete it or the Machine", s.Namesake.Name)
	}
	s.infraEnv = s.Namesake
	if s.HostMayHaveBooted() {
		if s.infraEnv == nil {
			s.infraEnv = s.InfraEnvs[0] // Agents are looked up through InfraEnvs
		}
		s.pass(stage, bootstrapv1.DiscoveryImageReadyReason, "")
		return true, nil
	}
	if proceed, err := r.pullSecret(ctx, s); !proceed {
		return proceed, err
	}
	desired, err := desiredInfraEnv(s)
	if err != nil {
		return s.wait(stage, bootstrapv1.InvalidConfigurationReason, "%s", err)
	}
	if s.NetworksMissing() && s.Namesake == nil {
		return s.waitForNetwork() // what is made afterwards has the addresses from the start
	}
	if _, err := r.applier.Apply(ctx, desired, s.Namesake); err != nil {
		if kube.Refused(err) {
			return s.wait(stage, bootstrapv1.DiscoveryImageFailedReason, "InfraEnv %s is refused: %s", desired.Name, assisted.RedactURLs(err.Error()))
		}
		return false, err
	}
	if s.Namesake == nil {
		r.written.rememberMade(s, desired, r.now())
		s.infraEnv = desired
	}
	return r.discoveryImageReady(s)
}

// discoveryImageReady reports on the image. Once bootstrap data was handed out the image is no longer needed to go on.
func (r *Reconciler) discoveryImageReady(s *scope) (bool, error) {
	const stage = bootstrapv1.DiscoveryImageReadyCondition
	image := assisted.ObserveImage(s.infraEnv)
	switch {
	case s.NetworksMissing():
		return s.waitForNetwork()
	case image.Failure != "":
		_, _ = s.wait(stage, bootstrapv1.DiscoveryImageFailedReason, "assisted-service cannot make the discovery image of InfraEnv %s: %s", s.infraEnv.Name, image.Failure)
	case image.ISOURL == "" && image.IgnitionURL == "":
		_, _ = s.wait(stage, bootstrapv1.WaitingForDiscoveryImageReason, "waiting for assisted-service to make the discovery image of InfraEnv %s", s.infraEnv.Name)
		if len(s.infraEnv.Status.Conditions) == 0 { // it has not even looked at the InfraEnv
			_, _ = r.overdue(s, s.infraEnv.CreationTimestamp.Time)
		}
	case s.NetworksNotTakenIn(s.infraEnv):
		_, _ = s.wait(stage, bootstrapv1.WaitingForDiscoveryImageReason, "waiting for assisted-service to take the NMStateConfigs that match %s into the discovery image of InfraEnv %s", s.SelectedNetworks(), s.infraEnv.Name)
	default:
		s.pass(stage, bootstrapv1.DiscoveryImageReadyReason, "")
		return true, nil
	}
	return s.DataHandedOut(), nil
}

// pullSecret waits for the pull secret: assisted-service does not notice that one appears which it missed.
func (r *Reconciler) pullSecret(ctx context.Context, s *scope) (bool, error) {
	name := s.PullSecretName()
	if name == "" {
		return s.wait(bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.PullSecretMissingReason,
			"neither spec.pullSecretRef nor ClusterDeployment %s names a pull secret: set one of them", s.Deployment.Name)
	}
	secret, err := kube.Read(ctx, r.Metadata, client.ObjectKey{Namespace: s.Config.Namespace, Name: name}, kube.MetadataOf(kube.Secret))
	if err != nil {
		return false, err
	}
	if secret == nil {
		return s.wait(bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.PullSecretMissingReason,
			"Secret %s does not exist: create it with type kubernetes.io/dockerconfigjson", name)
	}
	return true, nil
}

// desiredInfraEnv has no cluster reference: a host is bound only once it is proven to be the Machine's. It has no owner reference either: what is
// deleted with an InfraEnv is for the finalizer to decide.
func desiredInfraEnv(s *scope) (*aiv1beta1.InfraEnv, error) {
	spec := &s.Config.Spec
	override := s.Config.Annotations[bootstrapv1.DiscoveryIgnitionOverrideAnnotation]
	if override != "" && !json.Valid([]byte(override)) {
		return nil, fmt.Errorf("annotation %s is not valid JSON: write an ignition config of version 3.1.0", bootstrapv1.DiscoveryIgnitionOverrideAnnotation)
	}
	if _, err := metav1.LabelSelectorAsSelector(spec.NMStateConfigLabelSelector); err != nil {
		return nil, fmt.Errorf("spec.nmStateConfigLabelSelector: %w", err)
	}
	infraEnv := &aiv1beta1.InfraEnv{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Config.Namespace,
			Name:      s.Machine.Name,
			Labels: map[string]string{
				clusterv1.ClusterNameLabel:  s.Cluster.Name,
				bootstrapv1.ConfigNameLabel: format.MustFormatValue(s.Config.Name),
			},
		},
		Spec: aiv1beta1.InfraEnvSpec{
			PullSecretRef:          &corev1.LocalObjectReference{Name: s.PullSecretName()},
			AdditionalNTPSources:   spec.AdditionalNTPSources,
			SSHAuthorizedKey:       spec.SSHAuthorizedKey,
			CpuArchitecture:        spec.CPUArchitecture,
			AdditionalTrustBundle:  spec.AdditionalTrustBundle,
			IgnitionConfigOverride: override,
			OSImageVersion:         spec.OSImageVersion,
			MirrorRegistryRef:      mirrorRegistry(s),
			ImageType:              models.ImageTypeFullIso,
		},
	}
	if infraEnv.Spec.OSImageVersion == "" {
		infraEnv.Spec.OSImageVersion = assisted.MinorOf(s.Deployment.Annotations[assisted.OpenShiftVersionAnnotation])
	}
	if spec.Proxy != nil {
		infraEnv.Spec.Proxy = &aiv1beta1.Proxy{HTTPProxy: spec.Proxy.HTTPProxy, HTTPSProxy: spec.Proxy.HTTPSProxy, NoProxy: spec.Proxy.NoProxy}
	}
	if spec.NMStateConfigLabelSelector != nil {
		infraEnv.Spec.NMStateConfigLabelSelector = *spec.NMStateConfigLabelSelector.DeepCopy()
	}
	return infraEnv, nil
}

// mirrorRegistry is the config's own, else the cluster's.
func mirrorRegistry(s *scope) *hiveext.MirrorRegistryConfigMapReference {
	if ref := s.Config.Spec.MirrorRegistryRef; ref != nil && ref.Name != "" {
		return &hiveext.MirrorRegistryConfigMapReference{Name: ref.Name, Namespace: s.Config.Namespace}
	}
	if s.Install != nil {
		return s.Install.Spec.MirrorRegistryRef
	}
	return nil
}
