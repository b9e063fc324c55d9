package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// retry takes up that a failed installation is to be tried again: it records what is given up for that, which alone is touched afterwards.
func (r *Reconciler) retry(ctx context.Context, s *scope) (bool, error) {
	if _, err := s.RecordedRetry(); err != nil {
		s.found.Block(status.Retry, controlplanev1.InvalidConfigurationReason, err.Error()+": remove it")
		return true, nil //nolint:nilerr // for the user to correct
	}
	asked := s.RetryAsked()
	switch {
	case asked == "":
		return true, nil
	case s.Phase != controlplanev1.InstallationFailed:
		return true, r.recordRetry(ctx, s, facts.Retry{Asked: asked}) // it was there before
	}
	if against := s.NotRetryable(); len(against) > 0 {
		s.found.Block(status.Retry, controlplanev1.InstallationFailedReason, "it is not tried again: "+strings.Join(against, "; "))
		return true, nil
	}
	r.event(s.stored, "InstallationRetried", "The failed installation is given up, and tried again: its Machines are deleted")
	return true, r.recordRetry(ctx, s, facts.Retry{Asked: asked, GivenUp: s.ToGiveUp()})
}

func (r *Reconciler) recordRetry(ctx context.Context, s *scope, record facts.Retry) error {
	value, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("cannot encode what is tried again: %w", err)
	}
	after := s.stored.DeepCopy()
	annotations.AddAnnotations(after, map[string]string{controlplanev1.RetriedInstallationAnnotation: string(value)})
	return r.patchMetadata(ctx, s, after)
}

// confirmGivenUp stops when the cluster turns out to run.
func (r *Reconciler) confirmGivenUp(_ context.Context, s *scope) (bool, error) {
	if runs := s.MayRun(); len(runs) > 0 {
		s.block(controlplanev1.InstallationFailedReason, "it was to be tried again, but nothing more is deleted: "+strings.Join(runs, "; ")+". Delete the Cluster, or, to keep what is there, "+
			"the annotation "+controlplanev1.RetriedInstallationAnnotation)
		return false, nil
	}
	return true, nil
}

// tellGivenUp tells the bootstrap provider that there is no Node to be taken out of the cluster.
func (r *Reconciler) tellGivenUp(ctx context.Context, s *scope) (bool, error) {
	if s.Install == nil || !s.IsGivenUp(s.Install) {
		return true, nil
	}
	after := s.Install.DeepCopy()
	annotations.AddAnnotations(after, map[string]string{bootstrapv1.InstallationGivenUpAnnotation: ""})
	if err := kube.PatchMetadata(ctx, r.Client, s.Install, after, FieldOwner); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("cannot mark AgentClusterInstall %s as given up: %w", s.Install.Name, err)
	}
	return true, nil
}

// giveUpMachines deletes the Machines, whose hosts are deprovisioned with them. Workers are made again by their owners, and wait.
func (r *Reconciler) giveUpMachines(ctx context.Context, s *scope) (bool, error) {
	left := s.GivenUpMachines()
	for _, m := range left {
		if err := kube.Delete(ctx, r.Client, m); err != nil {
			return false, err
		}
	}
	if len(left) > 0 {
		s.block(controlplanev1.RetryingInstallationReason, "waiting for the deletion of Machines "+status.Names(left))
		return false, nil
	}
	return true, nil
}

// giveUpRegistration deregisters the cluster.
func (r *Reconciler) giveUpRegistration(ctx context.Context, s *scope) (bool, error) {
	left := slices.DeleteFunc(s.registration(), func(obj client.Object) bool { return !s.IsGivenUp(obj) })
	return r.deleteRegistration(ctx, s, left, status.Installation, controlplanev1.RetryingInstallationReason)
}

// giveUpKubeconfig deletes the published kubeconfig, which leads nowhere, and would tell of an installation that was begun.
func (r *Reconciler) giveUpKubeconfig(ctx context.Context, s *scope) (bool, error) {
	if s.Kubeconfig == nil || !s.IsGivenUp(s.Kubeconfig) {
		return true, nil
	}
	s.block(controlplanev1.RetryingInstallationReason, "waiting for the deletion of Secret "+s.Kubeconfig.Name)
	return false, kube.Delete(ctx, r.Client, s.Kubeconfig)
}

// beginAnew ends the books when the status says, too, that nothing has begun.
func (r *Reconciler) beginAnew(ctx context.Context, s *scope) (bool, error) {
	if s.stored.Status.Installation.Phase != s.Phase {
		s.block(controlplanev1.RetryingInstallationReason, "all of the failed installation is gone")
		s.again.In(reconcile.CacheLag)
		return false, nil
	}
	record, err := s.RecordedRetry()
	if err != nil {
		return false, err
	}
	return true, r.recordRetry(ctx, s, facts.Retry{Asked: record.Asked})
}
