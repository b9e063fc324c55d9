package bootdata

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
)

// Failed downloads are repeated after minDownloadDelay, then less and less often.
const (
	minDownloadDelay = 2 * time.Second
	maxDownloadDelay = 2 * time.Minute
)

// userData returns the bootstrap data; false while the data are not available. Downloads run in the background.
// Failed downloads are repeated with backoff, because a download cannot be watched.
func (d *Publisher) userData(
	ctx context.Context, s *scope.Scope, mode bootmode.Mode, source, digest string, ca *caBundle,
) (bootmode.Data, bool, error) {
	const stage = bootstrapv1.DataSecretAvailableCondition
	if !mode.UserDataFollowsSource() {
		data, err := mode.UserData(ctx, source)
		return data, err == nil, err
	}
	key := s.Key()
	attempt := key.String() + " " + digest
	if ca != nil {
		attempt += " " + ca.version
	}
	if left := d.downloads.Left(attempt); left > 0 {
		s.Again.In(left)
		stayWith(s, stage, "the discovery ignition could not be downloaded. The provider retries")
		return bootmode.Data{}, false, nil
	}
	data, err := d.ignitions.Get(key, attempt, func(ctx context.Context) (bootmode.Data, error) {
		bundle, err := d.readCA(ctx, key.Namespace, ca)
		if err != nil {
			return bootmode.Data{}, err
		}
		return mode.UserData(ctx, source, bundle, d.authorities.PEM())
	}, d.waker(s))
	switch {
	case errors.Is(err, bootmode.ErrPending):
		if recorded := s.Recorded(stage); recorded != nil && recorded.Reason == bootstrapv1.IgnitionDownloadFailedReason {
			stayWith(s, stage, "")
			return bootmode.Data{}, false, nil
		}
		s.Blockf(stage, bootstrapv1.WaitingForDiscoveryImageReason, "downloading the discovery ignition of InfraEnv %s", s.InfraEnv.Name)
		return bootmode.Data{}, false, nil
	case err != nil:
		d.retryDownload(s, attempt)
		s.Blockf(stage, bootstrapv1.IgnitionDownloadFailedReason, "cannot download the discovery ignition of InfraEnv %s: %s",
			s.InfraEnv.Name, err)
		return bootmode.Data{}, false, nil
	case hasDataOf(s, data.Modified) && d.downloads.Delay(attempt) < staleDownloadBackoff:
		d.retryDownload(s, attempt)
		s.Blockf(stage, bootstrapv1.WaitingForDiscoveryImageReason,
			"waiting for assisted-service to apply the change of InfraEnv %s to the discovery ignition", s.InfraEnv.Name)
		return bootmode.Data{}, false, nil
	}
	d.downloads.Reset(attempt)
	return data, true, nil
}

// staleDownloadBackoff is the backoff after which downloaded data are accepted although assisted-service reports no change: its
// timestamp counts only seconds.
const staleDownloadBackoff = 16 * time.Second

// hasDataOf reports whether the Secret already has the data that assisted-service serves. If so, assisted-service
// has not processed the change of the InfraEnv yet. Without authentication the URL stays the same, and the time of
// the last modification is the only evidence.
func hasDataOf(s *scope.Scope, modified string) bool {
	return modified != "" && s.DataSecret != nil && s.DataSecret.Annotations[desired.ModifiedAnnotation] == modified
}

// retryDownload drops the download, and repeats the download after a backoff.
func (d *Publisher) retryDownload(s *scope.Scope, attempt string) {
	d.ignitions.Drop(s.Key())
	s.Again.In(d.downloads.Record(attempt))
}

// stayWith keeps the condition of a failed download until the next download ends. message is the fallback if no
// condition is recorded.
func stayWith(s *scope.Scope, stage, message string) {
	s.Set(ptr.Deref(s.Recorded(stage), metav1.Condition{
		Type: stage, Status: metav1.ConditionFalse, Reason: bootstrapv1.IgnitionDownloadFailedReason, Message: message,
	}))
}

// waker returns a function that triggers a reconcile of the config.
func (d *Publisher) waker(s *scope.Scope) func() {
	config := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: s.Config.Namespace, Name: s.Config.Name}}
	return func() { d.wake <- event.GenericEvent{Object: config} }
}
