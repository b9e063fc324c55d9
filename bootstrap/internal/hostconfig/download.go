package hostconfig

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
)

// userData returns the bootstrap data; false while the data are not available. Downloads run in the background.
// Failed downloads are repeated with backoff, because a download cannot be watched.
func (r *Reconciler) userData(ctx context.Context, s *scope, mode bootmode.Mode, source, digest string, ca *caBundle) (bootmode.Data, bool, error) {
	const stage = bootstrapv1.DataSecretAvailableCondition
	if !mode.UserDataFollowsSource() {
		data, err := mode.UserData(ctx, source, nil)
		return data, err == nil, err
	}
	key := keyOf(s.Config)
	attempt := key.String() + " " + digest
	if ca != nil {
		attempt += " " + ca.version
	}
	if r.downloads.IsInBackOffSinceUpdate(attempt, r.Clock.Now()) {
		s.again.In(r.downloads.Get(attempt))
		s.stayWith(stage, "the discovery ignition could not be downloaded and is tried again")
		return bootmode.Data{}, false, nil
	}
	data, err := r.ignitions.Get(key, attempt, func(ctx context.Context) (bootmode.Data, error) {
		bundle, err := r.readCA(ctx, key.Namespace, ca)
		if err != nil {
			return bootmode.Data{}, err
		}
		return mode.UserData(ctx, source, bundle)
	}, r.waker(s))
	switch {
	case errors.Is(err, bootmode.ErrPending):
		if recorded := s.Recorded(stage); recorded != nil && recorded.Reason == bootstrapv1.IgnitionDownloadFailedReason {
			s.stayWith(stage, "")
			return bootmode.Data{}, false, nil
		}
		_, err = s.wait(stage, bootstrapv1.WaitingForDiscoveryImageReason, "downloading the discovery ignition of InfraEnv %s", s.infraEnv.Name)
		return bootmode.Data{}, false, err
	case err != nil:
		r.tryAgain(s, attempt)
		_, err = s.wait(stage, bootstrapv1.IgnitionDownloadFailedReason, "cannot download the discovery ignition of InfraEnv %s: %s", s.infraEnv.Name, err)
		return bootmode.Data{}, false, err
	case s.hasDataOf(data.Modified) && r.downloads.Get(attempt) < takesIn:
		r.tryAgain(s, attempt)
		_, err = s.wait(stage, bootstrapv1.WaitingForDiscoveryImageReason, "waiting for assisted-service to take the change of InfraEnv %s into the discovery ignition", s.infraEnv.Name)
		return bootmode.Data{}, false, err
	}
	r.downloads.DeleteEntry(attempt)
	return data, true, nil
}

// takesIn is the backoff after which downloaded data are accepted although assisted-service reports no change: its
// timestamp counts only seconds.
const takesIn = 16 * time.Second

// hasDataOf reports whether the Secret already has the data that assisted-service serves. If so, assisted-service
// has not processed the change of the InfraEnv yet. Without authentication the URL stays the same, and the time of
// the last modification is the only evidence.
func (s *scope) hasDataOf(modified string) bool {
	return modified != "" && s.DataSecret != nil && s.DataSecret.Annotations[ModifiedAnnotation] == modified
}

// tryAgain drops the download, and repeats the download after a backoff.
func (r *Reconciler) tryAgain(s *scope, attempt string) {
	r.ignitions.Drop(keyOf(s.Config))
	r.downloads.Next(attempt, r.Clock.Now())
	r.downloads.GC()
	s.again.In(r.downloads.Get(attempt))
}

// stayWith keeps the condition of a failed download until the next download ends. message is the fallback if no
// condition is recorded.
func (s *scope) stayWith(stage, message string) {
	s.conditions = append(s.conditions, ptr.Deref(s.Recorded(stage), metav1.Condition{
		Type: stage, Status: metav1.ConditionFalse, Reason: bootstrapv1.IgnitionDownloadFailedReason, Message: message,
	}))
}

// waker returns a function that triggers a reconcile of the config.
func (r *Reconciler) waker(s *scope) func() {
	config := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: s.Config.Namespace, Name: s.Config.Name}}
	return func() { r.wake <- event.GenericEvent{Object: config} }
}
