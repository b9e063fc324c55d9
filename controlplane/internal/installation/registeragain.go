package installation

import (
	"context"
	"fmt"
	"slices"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired/registration"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// registerAgain deregisters a cluster whose installation has not begun, if the spec has a change that assisted-service reads
// at a registration only. It also waits for a deregistration that any client requested. It returns true if the
// AgentClusterInstall can be written. assisted-service unbinds the bound hosts, and the bootstrap provider binds them to the
// new registration.
func (r *Registrar) registerAgain(ctx context.Context, s *scope.Scope, wanted *hiveext.AgentClusterInstall) (bool, error) {
	field := r.registerAgainFor(s, wanted)
	if leaving := r.beingDeregistered(s); len(leaving) > 0 {
		return false, r.awaitDeregistration(ctx, s, leaving, field)
	}
	if field == "" {
		return true, nil
	}
	// Without a ClusterDeployment no cluster is registered: the deletion of the rest completes a deregistration.
	mirrors := field == registration.ContentOfMirrors && s.Deployment != nil
	if delay := r.Recreations.Left(reconcile.Key("", s.Install)); mirrors && delay > 0 {
		return false, r.delayRegistration(ctx, s, wanted, delay)
	}
	if may, err := r.mayRegisterAgain(ctx, s); err != nil || !may {
		s.Again.In(reconcile.CacheLag)
		return false, err
	}
	if proceed, err := r.tryRegistration(ctx, s, wanted); !proceed {
		return false, err
	}
	if err := r.awaitDeregistration(ctx, s, s.Registration(), field); err != nil {
		return false, err
	}
	obj := s.Registration()[0]
	r.writer.Recent.Record(deregistrationKey(obj), obj.GetResourceVersion())
	if mirrors { // counted after the deletion: a deletion that fails is no registration
		r.Recreations.Record(reconcile.Key("", s.Install))
	}
	return false, nil
}

// registerAgainFor returns the field whose change requires another registration; "" if there is none.
func (r *Registrar) registerAgainFor(s *scope.Scope, wanted *hiveext.AgentClusterInstall) string {
	switch {
	case !ownership.OwnsInstall(s.Facts):
		return ""
	case s.Deployment != nil && s.Deployment.Spec.ClusterName != registration.ClusterName(s.Facts):
		return "config.clusterName" // Hive's admission webhook refuses an update of spec.clusterName
	}
	return registration.RegisterAgainFor(s.Install, wanted, func(path ...string) bool { return r.writer.Applier.Owns(s.Install, path...) })
}

// beingDeregistered returns the objects of the registration that are being deleted. The cache may not show the deletion
// yet. assisted-service deregisters the cluster for each of the objects.
func (r *Registrar) beingDeregistered(s *scope.Scope) []client.Object {
	return slices.DeleteFunc(s.Registration(), func(obj client.Object) bool {
		return obj.GetDeletionTimestamp().IsZero() && r.writer.Recent.Pending(deregistrationKey(obj), obj.GetResourceVersion()) == 0
	})
}

func deregistrationKey(obj client.Object) string {
	return reconcile.Key(fmt.Sprintf("deregister %T", obj), obj)
}

// awaitDeregistration deletes the first of the given objects of the registration, and reports the reason.
func (r *Registrar) awaitDeregistration(ctx context.Context, s *scope.Scope, parts []client.Object, field string) error {
	_, err := r.deleteRegistration(ctx, s, parts, tasks.Installation, controlplanev1.WaitingForAssistedServiceReason)
	if waiting := s.Found.Blocked(tasks.Installation); err == nil && waiting != nil {
		s.Block(waiting.Reason, fmt.Sprintf("%s: %s", reregistrationReason(field), waiting.Message))
	}
	return err
}

// delayRegistration holds the installation of a cluster whose mirrors change too often, so that it does not begin with
// outdated mirrors. It applies changes that need no registration meanwhile. RegisterAgainFor compares the content of the
// mirrors last. Therefore no other field needs a registration.
func (r *Registrar) delayRegistration(
	ctx context.Context, s *scope.Scope, wanted *hiveext.AgentClusterInstall, delay time.Duration,
) error {
	s.Again.In(delay)
	s.Block(controlplanev1.WaitingForAssistedServiceReason, fmt.Sprintf("Cluster is registered again at %s: %s changed again after a "+
		"registration. Find the clients that change the ConfigMap, or revert its content. The installation is blocked",
		r.clock.Now().Add(delay).UTC().Format(time.RFC3339), registration.ContentOfMirrors))
	if !s.Install.Spec.HoldInstallation { // first, because the API server may refuse the other changes
		if held, err := r.holdInstallation(ctx, s, "The cluster is registered with outdated mirrors"); err != nil || !held {
			return err
		}
	}
	wanted.Spec.HoldInstallation = true
	registered := s.Install.Annotations[bootstrapv1.MirrorsDigestAnnotation]
	metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, bootstrapv1.MirrorsDigestAnnotation, registered)
	_, err := r.applyRegistrations(ctx, s, wanted)
	return err
}

// tryRegistration reports whether the API server would accept the objects of a registration. Otherwise a cluster must not be
// deregistered: no registration would be left, and the hosts would be unbound for nothing.
func (r *Registrar) tryRegistration(ctx context.Context, s *scope.Scope, install *hiveext.AgentClusterInstall) (bool, error) {
	wanted, err := writer.Complete(install)
	if err != nil {
		return false, err
	}
	objects := []struct {
		kind string
		client.Object
	}{{"ClusterDeployment", registration.ClusterDeployment(s.Facts, s.Found.Version)}, {"AgentClusterInstall", wanted}}
	for _, obj := range objects { // a remembered refusal of the second object saves the request for the first
		if err := r.writer.Trials.Refused(&s.Again, obj.Object); err != nil {
			return false, blockRefused(s, obj.kind, err)
		}
	}
	for _, obj := range objects {
		if err := r.writer.Trials.TryCreate(ctx, &s.Again, obj.Object); err != nil {
			return false, blockRefused(s, obj.kind, err)
		}
	}
	return true, nil
}

// reregistrationReason returns why a registration is deleted: for a change of field, or for another reason if field is empty.
func reregistrationReason(field string) string {
	if field == "" {
		return "the registration is being deleted, and is created again when assisted-service has deregistered the cluster"
	}
	return fmt.Sprintf("the cluster is registered again, because assisted-service does not apply a change of %s", field)
}

// mayRegisterAgain reads the API server, past the cache. It returns true if the control plane is unchanged, and
// assisted-service reports that no installation was started. The deletion cancels an installation that starts at this very
// moment: no disk is written before the end of the preparation, which takes longer.
func (r *Registrar) mayRegisterAgain(ctx context.Context, s *scope.Scope) (bool, error) {
	now := &controlplanev1.OpenshiftAssistedControlPlane{}
	exists, err := kube.Exists(ctx, r.live, s.Stored, now)
	if err != nil || !exists || now.ResourceVersion != s.Stored.ResourceVersion {
		return false, err
	}
	install, err := kube.Read(ctx, r.live, client.ObjectKeyFromObject(s.Install), &hiveext.AgentClusterInstall{})
	if err != nil || install == nil {
		return false, err
	}
	if !isAnswered(install) {
		s.Block(controlplanev1.WaitingForAssistedServiceReason, fmt.Sprintf("waiting for assisted-service to report the state of "+
			"AgentClusterInstall %s: whether an installation was started is not known", install.Name))
		return false, nil
	}
	return install.UID == s.Install.UID && install.Spec.ClusterMetadata == nil && !assisted.Observe(install).Started, nil
}

// isAnswered reports whether assisted-service has registered an AgentClusterInstall, or refused it. An empty status is
// no statement: a restore drops it, and the service clears it while its database is not reachable.
func isAnswered(install *hiveext.AgentClusterInstall) bool {
	return assisted.Observe(install).Registered || slices.ContainsFunc(install.Status.Conditions, func(c hivev1.ClusterInstallCondition) bool {
		return c.Type == hiveext.ClusterSpecSyncedCondition && c.Status == corev1.ConditionFalse && c.Reason == hiveext.ClusterInputErrorReason
	})
}
