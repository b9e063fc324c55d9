package installation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/attempt"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/prerequisites"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/retry"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/replicas"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Retrier gives up failed installations if the user requests it, and lets them begin again.
type Retrier struct {
	client    client.Client
	registrar *Registrar
	writer    *writer.Writer
	clock     clock.PassiveClock
}

// NewRetrier returns a Retrier.
func NewRetrier(c client.Client, registrar *Registrar, w *writer.Writer, clk clock.PassiveClock) *Retrier {
	return &Retrier{client: c, registrar: registrar, writer: w, clock: clk}
}

// Retry begins another attempt of a failed installation if the user requests it. It records the objects to give up; the
// attempt deletes no other object. Retry returns true together with an error if only the check of the next attempt failed:
// the other phases then run.
func (r *Retrier) Retry(ctx context.Context, s *scope.Scope) (bool, error) {
	record, err := attempt.RecordedRetry(s.Facts)
	if err != nil {
		s.Found.Block(tasks.Retry, controlplanev1.InvalidConfigurationReason, err.Error()+": remove it")
		return true, nil //nolint:nilerr // for the user to correct
	}
	if attempt.GivesUp(s.Facts) { // although the cluster is installed: the record is outdated
		err := r.recordRetry(ctx, s, attempt.Retry{Requested: record.Requested})
		return err == nil, err
	}
	requested := attempt.RetryRequested(s.Facts)
	switch {
	case requested == "":
		return true, nil
	case s.Phase != controlplanev1.InstallationFailed:
		err := r.recordRetry(ctx, s, attempt.Retry{Requested: requested, Since: record.Since}) // the request is older than a failure
		return err == nil, err
	}
	against, err := r.againstRetry(ctx, s)
	if err != nil {
		s.Found.Block(tasks.Retry, controlplanev1.InstallationFailedReason,
			"the installation is not retried yet: its registration could not be checked: "+bound.Cause(assisted.RedactURLs(err.Error())))
		return true, err
	}
	if len(against) > 0 {
		s.Found.Block(tasks.Retry, controlplanev1.InstallationFailedReason, "the installation is not retried: "+bound.Join(against, ""))
		return true, nil
	}
	begun := attempt.Retry{Requested: requested, GivenUp: retry.ToGiveUp(s.Facts), Since: metav1.NewTime(r.clock.Now())}
	if err := r.recordRetry(ctx, s, begun); err != nil {
		return false, err
	}
	s.Found.Event(corev1.EventTypeNormal, "InstallationRetried",
		"The failed installation is retried: its Machines are deleted")
	return false, nil
}

// againstRetry returns what blocks another attempt: the cluster may run, or its registration would be refused. The hosts
// are not wiped and the failed installation is not deregistered for a registration that the API server or an admission
// webhook rejects. The scope of the trial is that of the next attempt: no registration exists. The release image is not
// resolved yet. The name of the registered ClusterImageSet replaces that of the next one, which no admission reads.
func (r *Retrier) againstRetry(ctx context.Context, s *scope.Scope) (against []string, err error) {
	if against := retry.Blockers(s.Facts); len(against) > 0 {
		return against, nil
	}
	next := *s.Facts
	next.Begun, next.Deployment, next.Install = false, nil, nil
	trial := scope.New(&next)
	trial.ImageSetName = facts.RegisteredSetOf(s.Install)
	err = reconcile.Run(ctx, trial, prerequisites.Requirements, r.tryAttempt)
	s.Again.In(trial.Again.Delay())
	if blocked := trial.Found.Blocked(tasks.Installation); blocked != nil {
		against = append(against, blocked.Message)
	}
	return against, err
}

// tryAttempt blocks the trial scope of againstRetry if the registration would be refused.
func (r *Retrier) tryAttempt(ctx context.Context, trial *scope.Scope) (bool, error) {
	install, proceed := newInstall(trial)
	if !proceed {
		return false, nil
	}
	return r.registrar.tryRegistration(ctx, trial, install)
}

func (r *Retrier) recordRetry(ctx context.Context, s *scope.Scope, record attempt.Retry) error {
	value, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("cannot encode the record of the retry: %w", err)
	}
	after := s.Stored.DeepCopy()
	annotations.AddAnnotations(after, map[string]string{controlplanev1.RetriedInstallationAnnotation: string(value)})
	return r.writer.PatchMetadata(ctx, s, after)
}

// GiveUp deletes the recorded objects of a failed installation, one kind after the other, and then lets the installation
// begin again.
func (r *Retrier) GiveUp(ctx context.Context, s *scope.Scope) error {
	return reconcile.Run(
		ctx, s, r.confirmGivenUp, r.markGivenUp, r.giveUpMachines, r.giveUpRegistration, r.giveUpKubeconfig, r.restart,
	)
}

// confirmGivenUp checks before each step whether the cluster runs. If it may run, nothing more is deleted.
func (r *Retrier) confirmGivenUp(ctx context.Context, s *scope.Scope) (bool, error) {
	record, err := attempt.RecordedRetry(s.Facts)
	if err != nil {
		return false, err
	}
	if runs := retry.MayRun(s.Facts); len(runs) > 0 {
		if err := r.recordRetry(ctx, s, attempt.Retry{Requested: record.Requested}); err != nil {
			return false, err
		}
		s.Found.Event(corev1.EventTypeWarning, "InstallationRetryStopped",
			"Nothing more is deleted, and the installation is not retried: %s", bound.Join(runs, ""))
		return false, nil
	}
	if unknown := retry.NotSilent(s.Facts); unknown != "" {
		s.Block(controlplanev1.RetryingInstallationReason, "nothing more is deleted before it is clear whether the cluster runs: "+unknown)
		return false, nil
	}
	return true, nil
}

// markGivenUp reports to the bootstrap provider that no Node has to be removed from the cluster.
func (r *Retrier) markGivenUp(ctx context.Context, s *scope.Scope) (bool, error) {
	install := attempt.ObjectsToGiveUp(s.Facts).Install
	if install == nil {
		return true, nil
	}
	marked := install.DeepCopy()
	metav1.SetMetaDataAnnotation(&marked.ObjectMeta, bootstrapv1.InstallationGivenUpAnnotation, "")
	err := kube.PatchMetadata(ctx, r.client, install, marked, writer.FieldOwner)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("cannot mark AgentClusterInstall %s as abandoned: %w", install.Name, err)
	}
	return true, nil
}

// giveUpMachines deletes the recorded Machines, and with them their hosts are deprovisioned. The owners of workers create
// them again.
func (r *Retrier) giveUpMachines(ctx context.Context, s *scope.Scope) (bool, error) {
	left := attempt.ObjectsToGiveUp(s.Facts).Machines
	if len(left) == 0 {
		return true, nil
	}
	s.Block(controlplanev1.RetryingInstallationReason, "waiting for the deletion of Machines "+replicas.Names(left))
	var failures []error
	for _, m := range left {
		failures = append(failures, kube.Delete(ctx, r.client, m))
	}
	return false, errors.Join(failures...)
}

// giveUpRegistration deregisters the cluster.
func (r *Retrier) giveUpRegistration(ctx context.Context, s *scope.Scope) (bool, error) {
	given := attempt.ObjectsToGiveUp(s.Facts)
	left := slices.DeleteFunc([]client.Object{given.Deployment, given.Install}, kube.IsNil)
	return r.registrar.deleteRegistration(ctx, s, left, tasks.Installation, controlplanev1.RetryingInstallationReason)
}

// giveUpKubeconfig lets the garbage collector delete the published kubeconfig, which would be evidence of an installation
// that has begun. It makes an object that does not exist the only owner of the Secret. So the manager needs no right to
// delete Secrets.
func (r *Retrier) giveUpKubeconfig(ctx context.Context, s *scope.Scope) (bool, error) {
	kubeconfig := attempt.ObjectsToGiveUp(s.Facts).Kubeconfig
	if kubeconfig == nil {
		return true, nil
	}
	s.Block(controlplanev1.RetryingInstallationReason, "waiting for the deletion of Secret "+kubeconfig.Name)
	after := kubeconfig.DeepCopy()
	after.OwnerReferences = []metav1.OwnerReference{attempt.GivenUpOwner(s.Facts)}
	patch := func() error { return kube.PatchMetadata(ctx, r.client, kubeconfig, after, writer.FieldOwner) }
	refused, err := r.writer.Owners.Write(after, kubeconfig, patch)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("cannot release the kubeconfig in Secret %s: %w", kubeconfig.Name, err)
	}
	if refused > 0 {
		s.Again.In(refused)
		s.Block(controlplanev1.RetryingInstallationReason, fmt.Sprintf("Secret %s of the failed installation is not deleted yet: "+
			"the API server refuses a change of its owner references, as OpenShift does for a client that may not delete Secrets. "+
			"%s, or delete the Secret: the kubeconfig of the failed installation is lost, and no server is wiped",
			kubeconfig.Name, reconcile.HubRights))
	}
	return false, nil
}

// restart ends the record of the objects to give up, once the status reports, too, that no installation has
// begun. It also ends the record if the cluster has another registration, as after a restore.
func (r *Retrier) restart(ctx context.Context, s *scope.Scope) (bool, error) {
	record, err := attempt.RecordedRetry(s.Facts)
	switch {
	case err != nil:
		return false, err
	case s.Begun && s.Deployment == nil && s.Install == nil:
		s.Block(controlplanev1.RetryingInstallationReason, fmt.Sprintf("all recorded objects of the failed installation are deleted, but "+
			"Secret %s was not recorded, and is evidence of an installation. If it belongs to the failed installation, delete it: "+
			"the kubeconfig is lost", secret.Name(s.ClusterName(), secret.Kubeconfig)))
		return false, nil
	case !s.Begun && s.Stored.Status.Installation.Phase != s.Phase:
		s.Block(controlplanev1.RetryingInstallationReason, "all objects of the failed installation are deleted")
		s.Again.In(reconcile.CacheLag)
		return false, nil
	}
	return true, r.recordRetry(ctx, s, attempt.Retry{Requested: record.Requested, Since: record.Since})
}
