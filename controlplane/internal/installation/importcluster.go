package installation

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired/registration"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// importCluster registers an installed cluster that assisted-service did not install, because it was moved to this hub or
// restored. Then assisted-service can add hosts to it. importCluster creates missing objects, and changes none. It creates
// the AgentClusterInstall last, because assisted-service acts on it.
func (r *Registrar) importCluster(ctx context.Context, s *scope.Scope) (bool, error) {
	if reason, message := registration.NotImportable(s.Facts); message != "" {
		s.Block(reason, message)
		return false, nil
	}
	if s.PullSecret == nil {
		if _, err := r.images.EnsurePlaceholder(ctx, s); err != nil {
			return false, err
		}
	}
	identity, err := r.workloads.Identify(ctx, s.ClusterKey())
	switch {
	case errors.Is(err, cluster.ErrNotConnected):
		s.Block(controlplanev1.WaitingForImportReason, scope.NotConnected)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot import the cluster: %w", err)
	}
	return false, r.importAs(ctx, s, identity)
}

func (r *Registrar) importAs(ctx context.Context, s *scope.Scope, identity workload.Identity) error {
	running, err := versions.ParseRelease(s.Workload.OpenShiftVersion)
	if err != nil {
		return fmt.Errorf("cannot import the cluster: %w", err)
	}
	imageSet, named, err := r.nameRunning(ctx, s)
	if err != nil || !named {
		return err
	}
	var deployment client.Object = s.Deployment
	if s.Deployment == nil {
		deployment = registration.ImportedClusterDeployment(s.Facts, running, identity)
		if created, err := r.createOnce(ctx, s, deployment, "ClusterDeployment"); !created {
			return err
		}
	}
	if err := r.kubeconfig.PropagateTo(ctx, s, deployment); err != nil {
		return err
	}
	install := registration.ImportedAgentClusterInstall(s.Facts, imageSet, identity)
	if created, err := r.createOnce(ctx, s, install, "AgentClusterInstall"); !created {
		return err
	}
	s.Found.Event(corev1.EventTypeNormal, "ClusterImported",
		"Registered the installed cluster with the assisted-service of this hub, so that hosts can be added")
	return nil
}

// nameRunning writes our ClusterImageSet of the release image that the cluster runs, and returns its name; empty when
// the cluster does not report the image. named is false when another client has taken the name.
func (r *Registrar) nameRunning(ctx context.Context, s *scope.Scope) (name string, named bool, err error) {
	image := s.Workload.ReleaseImage
	if image == "" {
		return "", true, nil
	}
	name = assisted.ClusterImageSetName(s.ControlPlane.Namespace, s.ControlPlane.Name, image)
	named, err = r.images.WriteImageSet(ctx, s, registration.ClusterImageSet(s.Facts, name, image, "", ""))
	return name, named, err
}

// createOnce creates an object that the cache does not show. An existing object is not changed: the cache will show it.
func (r *Registrar) createOnce(ctx context.Context, s *scope.Scope, obj client.Object, kind string) (created bool, err error) {
	s.Block(controlplanev1.WaitingForImportReason, "registering the installed cluster with assisted-service, so that hosts can be added")
	switch err := r.client.Create(ctx, obj, writer.FieldOwner); {
	case apierrors.IsAlreadyExists(err):
		s.Again.In(reconcile.CacheLag)
		return false, nil
	case err != nil:
		return r.refused(s, kind, err)
	}
	r.writer.Accepted(s, kind)
	return true, nil
}
