package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// installation registers the cluster in assisted-service: a ClusterDeployment and an AgentClusterInstall, which carry no owner references, for
// the garbage collector must never deregister a cluster.
func (r *Reconciler) installation(ctx context.Context, s *scope) (bool, error) {
	switch {
	case s.foreign(s.Deployment, "ClusterDeployment"), s.foreign(s.Install, "AgentClusterInstall"):
		return false, nil
	case s.Begun && s.Install == nil:
		s.block(controlplanev1.WaitingForAssistedServiceReason, fmt.Sprintf("AgentClusterInstall %s is missing although the installation was started: it is not made again, "+
			"for that would install over the hosts; restore it from a backup, or, if the cluster was moved here, import the cluster into the assisted-service of this hub", s.ControlPlane.Name))
		return false, nil
	case s.Anew:
		s.block(controlplanev1.RegisteredAnewReason, status.RegisteredAnew(s.Facts))
		return false, nil
	case s.Begun:
		return true, nil
	case len(s.MissingConfigMaps) > 0:
		s.block(controlplanev1.ManifestsMissingReason, fmt.Sprintf("ConfigMap %s does not exist: create it, or remove it from config.manifestsConfigMapRefs and config.imageRegistryRef",
			strings.Join(s.MissingConfigMaps, ", ")))
		return false, nil
	}
	install, err := desired.AgentClusterInstall(s.Facts, s.imageSetName, s.found.Version)
	if err != nil {
		s.block(controlplanev1.InvalidConfigurationReason, err.Error()+": correct config.installConfigOverride or the annotation "+controlplanev1.InstallConfigOverrideAnnotation)
		return false, nil //nolint:nilerr // for the user to correct: told by a condition, not tried again
	}
	if err := r.apply(ctx, s, desired.ClusterDeployment(s.Facts, s.found.Version), s.Deployment); err != nil {
		return s.rejected("ClusterDeployment", err)
	}
	if err := r.apply(ctx, s, install, s.Install); err != nil {
		return s.rejected("AgentClusterInstall", err)
	}
	s.found.Registered = true
	return true, nil
}

// markInstalled states, once, in the ClusterDeployment that its cluster is installed, as Hive does where it runs: a service that has lost its database then takes
// the cluster in as an installed one.
func (r *Reconciler) markInstalled(ctx context.Context, s *scope) (bool, error) {
	deployment := cmp.Or(s.relabelled, s.Deployment)
	if !s.Installed() || !s.OwnsDeployment() || !s.OwnsInstall() || deployment.Spec.Installed ||
		s.Install.Spec.ClusterMetadata == nil || !deployment.DeletionTimestamp.IsZero() {
		return true, nil
	}
	installed, err := desired.InstalledClusterDeployment(s.Facts, deployment)
	if err != nil {
		return false, err
	}
	switch err := r.apply(ctx, s, installed, deployment); {
	case kube.Refused(err):
		s.again.In(refusedRetry) // nothing waits for it
		ctrl.LoggerFrom(ctx).Error(err, "ClusterDeployment cannot be marked as installed")
		return true, nil
	case err != nil:
		return false, fmt.Errorf("cannot mark ClusterDeployment %s as installed: %w", deployment.Name, err)
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
	s.block(controlplanev1.InstallationRejectedReason, fmt.Sprintf("%s %s was refused, correct the configuration: %s", kind, s.ControlPlane.Name, assisted.RedactURLs(err.Error())))
	return false, nil
}
