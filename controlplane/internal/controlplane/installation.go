package controlplane

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// installation registers the cluster in assisted-service: a ClusterDeployment and an AgentClusterInstall, which carry no owner references, for
// the garbage collector must never deregister a cluster.
func (r *Reconciler) installation(ctx context.Context, s *scope) (bool, error) {
	switch {
	case s.foreign(s.deployment, "ClusterDeployment"), s.foreign(s.install, "AgentClusterInstall"):
		return false, nil
	case s.begun() && s.install == nil:
		s.block(controlplanev1.WaitingForAssistedServiceReason, fmt.Sprintf("AgentClusterInstall %s is missing although the installation was started: it is not made again, "+
			"for that would install over the hosts; restore it from a backup, or, if the cluster was moved here, import the cluster into the assisted-service of this hub", s.controlPlane.Name))
		return false, nil
	case s.standing().anew:
		s.block(controlplanev1.RegisteredAnewReason, s.registeredAnew())
		return false, nil
	case s.begun():
		return true, nil
	case len(s.missingConfigMaps) > 0:
		s.block(controlplanev1.ManifestsMissingReason, fmt.Sprintf("ConfigMap %s does not exist: create it, or remove it from config.manifestsConfigMapRefs and config.imageRegistryRef",
			strings.Join(s.missingConfigMaps, ", ")))
		return false, nil
	}
	input, err := s.installInput()
	if err != nil {
		s.block(controlplanev1.InvalidConfigurationReason, err.Error()+": correct config.installConfigOverride or the annotation "+controlplanev1.InstallConfigOverrideAnnotation)
		return false, nil //nolint:nilerr // for the user to correct: told by a condition, not tried again
	}
	return r.register(ctx, s, input)
}

// registeredAnew says what happened to a cluster that assisted-service forgot, and the ways back. None of them deletes anything here.
func (s *scope) registeredAnew() string {
	kubeconfig := s.controlPlane.Name + "-admin-kubeconfig"
	if name := adminSecretOf(s.install); name != "" {
		kubeconfig = name
	}
	return fmt.Sprintf("the installation was begun already, but assisted-service has the cluster in state %q, as one that may be installed anew; perhaps its database was lost or is "+
		"older: nothing is changed, and no host is added. Delete nothing here: restore the newer database, or, if the cluster is installed, let assisted-service import it: "+
		"see that ClusterDeployment %s has spec.installed, and that Secret %s exists with a kubeconfig of the cluster, then deregister the cluster in the REST API of assisted-service alone",
		s.progress.State, s.controlPlane.Name, kubeconfig)
}

func (r *Reconciler) register(ctx context.Context, s *scope, input assisted.AgentClusterInstallInput) (bool, error) {
	deployment := assisted.ClusterDeployment(s.deploymentInput())
	if err := r.apply(ctx, s, deployment, s.deployment); err != nil {
		return s.rejected("ClusterDeployment", err)
	}
	if err := r.apply(ctx, s, assisted.AgentClusterInstall(input), s.install); err != nil {
		return s.rejected("AgentClusterInstall", err)
	}
	s.registered = true
	return true, nil
}

// markInstalled states, once, in the ClusterDeployment that its cluster is installed, as Hive does where it runs: a service that has lost its database then takes
// the cluster in as an installed one.
func (r *Reconciler) markInstalled(ctx context.Context, s *scope) (bool, error) {
	if !s.installed() || !s.owns(s.deployment) || !s.owns(s.install) || s.deployment.Spec.Installed ||
		s.install.Spec.ClusterMetadata == nil || !s.deployment.DeletionTimestamp.IsZero() {
		return true, nil
	}
	desired, err := assisted.InstalledClusterDeployment(s.deployment, s.labels(), s.install.Spec.ClusterMetadata)
	if err != nil {
		return false, err
	}
	switch err := r.apply(ctx, s, desired, s.deployment); {
	case kube.Refused(err):
		s.again.In(refusedRetry) // nothing waits for it
		ctrl.LoggerFrom(ctx).Error(err, "ClusterDeployment cannot be marked as installed")
		return true, nil
	case err != nil:
		return false, fmt.Errorf("cannot mark ClusterDeployment %s as installed: %w", s.deployment.Name, err)
	}
	return true, nil
}

// refusedRetry is how often a refused request is repeated. What is refused for what it says helps no repeating; but a webhook may go by what cannot be
// watched, such as a feature gate of its own.
const refusedRetry = 5 * time.Minute

// rejected makes a refusal a condition.
func (s *scope) rejected(kind string, err error) (bool, error) {
	if !kube.Refused(err) {
		return false, err
	}
	s.again.In(refusedRetry)
	s.block(controlplanev1.InstallationRejectedReason, fmt.Sprintf("%s %s was refused, correct the configuration: %s", kind, s.controlPlane.Name, assisted.RedactURLs(err.Error())))
	return false, nil
}

func (s *scope) deploymentInput() assisted.ClusterDeploymentInput {
	config := &s.controlPlane.Spec.Config
	in := assisted.ClusterDeploymentInput{
		Namespace:        s.controlPlane.Namespace,
		Name:             s.controlPlane.Name,
		Labels:           s.labels(),
		ClusterName:      s.cluster.Name,
		BaseDomain:       config.BaseDomain,
		PullSecret:       s.pullSecretName,
		OpenShiftVersion: s.version.String(),
	}
	if config.ClusterName != "" {
		in.ClusterName = config.ClusterName
	}
	return in
}

func (s *scope) installInput() (assisted.AgentClusterInstallInput, error) {
	config := &s.controlPlane.Spec.Config
	in := assisted.AgentClusterInstallInput{
		Namespace:          s.controlPlane.Namespace,
		Name:               s.controlPlane.Name,
		Labels:             s.labels(),
		ImageSet:           s.imageSetName,
		ControlPlaneAgents: s.replicas(),
		WorkerAgents:       s.workerReplicas(),
		APIVIPs:            config.APIVIPs,
		IngressVIPs:        config.IngressVIPs,
		PodNetworks:        s.cluster.Spec.ClusterNetwork.Pods.CIDRBlocks,
		ServiceNetworks:    s.cluster.Spec.ClusterNetwork.Services.CIDRBlocks,
		MachineNetworks:    config.MachineNetwork,
		NetworkType:        config.NetworkType,
		SSHPublicKey:       config.SSHAuthorizedKey,
		MastersSchedulable: ptr.Deref(config.MastersSchedulable, false),
		HoldInstallation:   ptr.Deref(config.HoldInstallation, false),
	}
	for _, ref := range config.ManifestsConfigMapRefs {
		in.Manifests = append(in.Manifests, ref.Name)
	}
	if ref := config.ImageRegistryRef; ref != nil {
		in.MirrorRegistry = ref.Name
	}
	if lb := config.LoadBalancer; lb != nil {
		in.LoadBalancerType = lb.Type
	}
	if p := config.Proxy; p != nil {
		in.Proxy = &assisted.Proxy{HTTP: p.HTTPProxy, HTTPS: p.HTTPSProxy, NoProxy: p.NoProxy}
	}
	if d := config.DiskEncryption; d != nil {
		in.DiskEncryption = &assisted.DiskEncryption{EnableOn: d.EnableOn, Mode: d.Mode, TangServers: d.TangServers}
	}
	var capabilities assisted.Capabilities
	if c := config.Capabilities; c != nil {
		capabilities = assisted.Capabilities{Baseline: c.BaselineCapability, Additional: c.AdditionalEnabledCapabilities}
	}
	var err error
	in.InstallConfigOverrides, err = assisted.InstallConfigOverrides(capabilities, in.OnBareMetal(), s.version,
		s.controlPlane.Annotations[controlplanev1.InstallConfigOverrideAnnotation], config.InstallConfigOverride)
	return in, err
}
