package controlplane

import (
	"context"
	"fmt"
	"slices"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// registerAgain deregisters a cluster whose installation has not begun if the spec changed in a way that
// assisted-service takes over at a registration only, and waits for a deregistration whoever requested it. Returns true
// if the AgentClusterInstall can be written. Hosts that are bound are unbound by assisted-service, and bound to the new
// registration by the bootstrap provider.
func (r *Reconciler) registerAgain(ctx context.Context, s *scope.Scope, wanted *hiveext.AgentClusterInstall) (bool, error) {
	field := ""
	if s.OwnsInstall() {
		field = desired.RegisterAgainFor(s.Install, wanted, func(path ...string) bool { return r.writer.Applier.Owns(s.Install, path...) })
		if s.Deployment != nil && s.Deployment.Spec.ClusterName != desired.ClusterName(s.Facts) {
			field = "config.clusterName" // Hive's admission webhook refuses an update of spec.clusterName
		}
	}
	goes := s.Deployment != nil && !s.Deployment.DeletionTimestamp.IsZero()
	switch {
	case field == "" && !goes:
		return true, nil
	case !goes:
		if delay := r.recreations.Delay(s.Install); delay > 0 && field == desired.ContentOfMirrors {
			return false, r.delayRegistration(ctx, s, delay)
		}
		if may, err := r.mayRegisterAgain(ctx, s); err != nil || !may {
			s.Again.In(reconcile.CacheLag)
			return false, err
		}
		if proceed, err := r.tryRegistration(ctx, s, wanted); !proceed {
			return false, err
		}
		if field == desired.ContentOfMirrors {
			r.recreations.Record(s.Install)
		}
	}
	_, err := r.deleteRegistration(ctx, s, s.Registration(), status.Installation, controlplanev1.WaitingForAssistedServiceReason)
	if waiting := s.Found.Blocked(status.Installation); waiting != nil {
		s.Block(waiting.Reason, fmt.Sprintf("%s: %s", whyAgain(field), waiting.Message))
	}
	return false, err
}

// delayRegistration holds the installation of a cluster whose mirrors change too often, so that it does not begin with
// outdated mirrors.
func (r *Reconciler) delayRegistration(ctx context.Context, s *scope.Scope, delay time.Duration) error {
	s.Again.In(delay)
	s.Block(controlplanev1.WaitingForAssistedServiceReason, fmt.Sprintf("Cluster is registered again within %s: %s changed again after a registration. "+
		"Find the clients that change the ConfigMap, or set its content back. The installation is on hold", delay, desired.ContentOfMirrors))
	if s.Install.Spec.HoldInstallation {
		return nil
	}
	_, err := r.holdInstallation(ctx, s, "The cluster is registered with outdated mirrors")
	return err
}

// tryRegistration reports whether the API server would take the objects of a registration. A cluster is not
// deregistered for what assisted-service of this hub refuses: no object would be left, and the hosts would be unbound
// for nothing.
func (r *Reconciler) tryRegistration(ctx context.Context, s *scope.Scope, install *hiveext.AgentClusterInstall) (bool, error) {
	if err := r.writer.Applier.TryCreate(ctx, desired.ClusterDeployment(s.Facts, s.Found.Version)); err != nil {
		return rejected(s, "ClusterDeployment", err)
	}
	if err := r.writer.Applier.TryCreate(ctx, install); err != nil {
		return rejected(s, "AgentClusterInstall", err)
	}
	return true, nil
}

func whyAgain(field string) string {
	if field == "" {
		return "the ClusterDeployment is being deleted, and is made again when assisted-service has deregistered the cluster"
	}
	return fmt.Sprintf("the cluster is registered again, for assisted-service does not take over a change of %s", field)
}

// mayRegisterAgain asks the API server, not the cache, whether the control plane is as it was read, and whether
// assisted-service reports that no installation was started. If it starts one at this very moment, the deletion cancels
// it: no disk is written before the preparation ends, which takes longer.
func (r *Reconciler) mayRegisterAgain(ctx context.Context, s *scope.Scope) (bool, error) {
	now := &controlplanev1.OpenshiftAssistedControlPlane{}
	there, err := kube.Exists(ctx, r.Live, s.Stored, now)
	if err != nil || !there || now.ResourceVersion != s.Stored.ResourceVersion {
		return false, err
	}
	install, err := kube.Read(ctx, r.Live, client.ObjectKeyFromObject(s.Install), &hiveext.AgentClusterInstall{})
	if err != nil || install == nil {
		return false, err
	}
	if !isAnswered(install) {
		s.Block(controlplanev1.WaitingForAssistedServiceReason, fmt.Sprintf("waiting for assisted-service to report the state of AgentClusterInstall %s: whether an installation was started is not known", install.Name))
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
