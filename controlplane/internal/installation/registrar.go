// Package installation registers a cluster with assisted-service, keeps the objects of its registration up to date, and
// deregisters the cluster. It also gives up failed installations, and begins them again.
package installation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired/registration"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/kubeconfig"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/releaseimage"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/installed"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Identifier reads the identity of an installed cluster.
type Identifier interface {
	Identify(ctx context.Context, cluster client.ObjectKey) (workload.Identity, error)
}

// Registrar registers clusters with assisted-service, and deregisters them.
type Registrar struct {
	client     client.Client
	live       client.Reader
	workloads  Identifier
	images     *releaseimage.Resolver
	kubeconfig *kubeconfig.Publisher
	writer     *writer.Writer
	clock      clock.PassiveClock
	// Recreations limits the registrations that changed mirrors require.
	Recreations *reconcile.Backoff
}

// NewRegistrar returns a Registrar.
func NewRegistrar(
	c client.Client, live client.Reader, workloads Identifier, images *releaseimage.Resolver, publisher *kubeconfig.Publisher,
	w *writer.Writer, clk clock.PassiveClock,
) *Registrar {
	return &Registrar{
		client: c, live: live, workloads: workloads, images: images, kubeconfig: publisher, writer: w, clock: clk,
		Recreations: reconcile.NewRecreations(clk),
	}
}

// Register registers the cluster with assisted-service: it writes a ClusterDeployment and an AgentClusterInstall. Neither has
// owner references: the garbage collector must never deregister a cluster.
func (r *Registrar) Register(ctx context.Context, s *scope.Scope) (bool, error) {
	switch {
	case foreign(s, s.Deployment, "ClusterDeployment"), foreign(s, s.Install, "AgentClusterInstall"):
		return false, nil
	case s.Installed() && (s.Install == nil || ownership.Imported(s.Facts) && s.Deployment == nil):
		return r.importCluster(ctx, s)
	case s.Begun && s.Install == nil:
		s.Block(controlplanev1.WaitingForAssistedServiceReason, fmt.Sprintf("AgentClusterInstall %s is missing although the installation "+
			"was started: it is not created again, because that would reinstall the hosts. Restore it from a backup. "+
			"If nothing runs on the hosts yet, delete the Cluster, which wipes them, and create it again", s.ControlPlane.Name))
		return false, nil
	case s.Reregistered:
		s.Block(controlplanev1.ReregisteredReason, installed.Reregistered(s.Facts))
		return false, nil
	case s.Begun:
		return true, nil
	}
	install, proceed := newInstall(s)
	if !proceed {
		return false, nil
	}
	if err := r.recordMirrors(ctx, s, install); err != nil {
		return false, err
	}
	if proceed, err := r.registerAgain(ctx, s, install); !proceed {
		return false, err
	}
	if proceed, err := r.confirmDeployment(ctx, s); !proceed {
		return false, err
	}
	return r.applyRegistrations(ctx, s, install)
}

// newInstall returns the AgentClusterInstall to register. It blocks if the user has to correct the configuration first.
func newInstall(s *scope.Scope) (install *hiveext.AgentClusterInstall, proceed bool) {
	if len(s.MissingConfigMaps) > 0 {
		s.Block(controlplanev1.ManifestsMissingReason, fmt.Sprintf("ConfigMap %s does not exist: create it, or remove it from "+
			"config.manifestsConfigMapRefs and config.imageRegistryRef", bound.List(s.MissingConfigMaps)))
		return nil, false
	}
	install, err := registration.AgentClusterInstall(s.Facts, s.ImageSetName, s.Found.Version)
	if err != nil {
		s.Block(controlplanev1.InvalidConfigurationReason, err.Error())
		return nil, false
	}
	return install, true
}

// applyRegistrations writes the ClusterDeployment and the AgentClusterInstall.
func (r *Registrar) applyRegistrations(ctx context.Context, s *scope.Scope, install *hiveext.AgentClusterInstall) (bool, error) {
	deployment := registration.ClusterDeployment(s.Facts, s.Found.Version)
	if s.Deployment == nil || s.PropagationFailed {
		registration.PassOnAtOnce(s.ControlPlane, deployment)
	}
	if s.Install == nil || s.PropagationFailed {
		registration.PassOnAtOnce(s.ControlPlane, install)
	}
	if err := r.writer.KeepIgnored(ctx, s, r.writer.Applier, install); err != nil {
		return false, err
	}
	if proceed, err := r.applyRegistration(ctx, s, "ClusterDeployment", deployment, s.Deployment); !proceed {
		return false, err
	}
	if proceed, err := r.applyRegistration(ctx, s, "AgentClusterInstall", install, s.Install); !proceed {
		return false, err
	}
	s.Found.Registered = true
	return true, r.withdrawHold(ctx, s, install)
}

// applyRegistration writes an object of the registration. It does not change an object that the cache does not show yet,
// because the object may register a foreign cluster: see foreign.
func (r *Registrar) applyRegistration(
	ctx context.Context, s *scope.Scope, kind string, wanted, observed client.Object,
) (bool, error) {
	switch err := r.writer.Apply(ctx, s, wanted, observed); {
	case errors.Is(err, writer.ErrNotCached):
		s.Again.In(reconcile.CacheLag)
		s.Block(controlplanev1.WaitingForAssistedServiceReason, fmt.Sprintf("Cluster not registered yet: %s %s was created a moment ago. "+
			"The manager checks whether it belongs to this cluster", kind, wanted.GetName()))
		return false, nil
	case err != nil:
		return r.refused(s, kind, err)
	}
	r.writer.Accepted(s, kind)
	return true, nil
}

// recordMirrors records the digest of the ConfigMap with the mirrors in an AgentClusterInstall. assisted-service reads the
// ConfigMap at the registration, and does not watch it.
func (r *Registrar) recordMirrors(ctx context.Context, s *scope.Scope, install *hiveext.AgentClusterInstall) error {
	registries, err := r.images.Registries(ctx, s)
	if registries != nil {
		metav1.SetMetaDataAnnotation(&install.ObjectMeta, bootstrapv1.MirrorsDigestAnnotation, registries.Digest)
	}
	return err
}

// confirmDeployment reads the ClusterDeployment of a missing AgentClusterInstall from the API server, and returns false if
// the ClusterDeployment is being deleted. assisted-service would delete each AgentClusterInstall that is created meanwhile
// (chaos, seed 1: the cache of ClusterDeployments was late).
func (r *Registrar) confirmDeployment(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Install != nil || s.Deployment == nil {
		return true, nil
	}
	deployment, err := kube.Read(ctx, r.live, client.ObjectKeyFromObject(s.Deployment), &hivev1.ClusterDeployment{})
	if err != nil {
		return false, err
	}
	if deployment != nil && deployment.DeletionTimestamp.IsZero() {
		return true, nil
	}
	s.Again.In(reconcile.CacheLag)
	s.Block(controlplanev1.WaitingForAssistedServiceReason, fmt.Sprintf("waiting for assisted-service to deregister the cluster "+
		"(ClusterDeployment %s): the cluster is registered again afterwards", s.Deployment.Name))
	return false, nil
}

// refused reports a refusal of the API server, and schedules the next attempt. It returns other errors.
func (r *Registrar) refused(s *scope.Scope, kind string, err error) (bool, error) {
	if kube.IsRefused(err) {
		r.writer.Refused(s, kind)
	}
	return false, blockRefused(s, kind, err)
}

// blockRefused reports a refusal of the API server. It returns other errors.
func blockRefused(s *scope.Scope, kind string, err error) error {
	if !kube.IsRefused(err) {
		return err
	}
	s.Block(controlplanev1.InstallationRejectedReason,
		fmt.Sprintf("%s %s was refused, correct the configuration: %s", kind, s.ControlPlane.Name, assisted.RedactURLs(err.Error())))
	return nil
}

// foreign reports whether an object of our name belongs to another owner, and blocks in this case. The object may register a
// running cluster: the message must not advise to delete it.
func foreign(s *scope.Scope, obj client.Object, kind string) bool {
	if kube.IsNil(obj) || slices.Contains(s.Registration(), obj) {
		return false
	}
	if former := s.Owner().FormerCluster(obj); former != "" {
		blockFormer(s, obj, kind, former)
		return true
	}
	var wanted []string
	for key, value := range s.Labels() {
		wanted = append(wanted, key+"="+value)
	}
	slices.Sort(wanted)
	s.Block(controlplanev1.InstallationNotOursReason, fmt.Sprintf("%[1]s %[2]s exists and was not created for this control plane. "+
		"It is not changed. Give the control plane another name. If the %[1]s belongs to this cluster, set its labels: %[3]s",
		kind, obj.GetName(), strings.Join(wanted, ", ")))
	return true
}

// blockFormer reports an object of a former Cluster of our name. The object may belong to this cluster: a control plane that
// was created again from a manifest has lost its record of UIDs.
func blockFormer(s *scope.Scope, obj client.Object, kind string, former types.UID) {
	if !obj.GetDeletionTimestamp().IsZero() {
		s.Block(controlplanev1.WaitingForAssistedServiceReason, fmt.Sprintf("%s %s of a former Cluster %s is being deleted: "+
			"waiting until assisted-service has deregistered that cluster", kind, obj.GetName(), s.ClusterName()))
		return
	}
	s.Block(controlplanev1.InstallationNotOursReason, fmt.Sprintf("%[1]s %[2]s was created for a former Cluster %[3]s (UID %[4]s), whose "+
		"hosts may be running. It is not changed. Give the control plane another name. If the %[1]s belongs to this cluster, add the UID to "+
		"the annotation %[5]s of the control plane", kind, obj.GetName(), s.ClusterName(), former, contract.ClusterUIDsAnnotation))
}
