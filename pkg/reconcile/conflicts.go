package reconcile

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// minConflictRetry is the delay after the first conflict. The delay doubles with each further conflict,
	// up to maxConflictRetry. Usually the change that the cache lacked triggers a reconcile earlier. On a
	// busy hub all caches may lag by a minute, and each retry is one more write to the hub.
	minConflictRetry, maxConflictRetry = time.Second, 30 * time.Second
	// maxConflicts is the number of consecutive conflicts that are explained by a stale cache; they take a
	// minute and a half. A further conflict is returned as an error: it is logged, counted, and retried with
	// backoff.
	maxConflicts = 7
)

// TolerateConflicts wraps a reconciler so that a conflict is not an error. The API server rejects a write
// that is based on an outdated object, which is normal where several controllers write to one object. An
// earlier RequeueAfter of the reconciler is kept.
func TolerateConflicts(reconciler reconcile.Reconciler) reconcile.Reconciler {
	conflicts := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minConflictRetry, maxConflictRetry)
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		result, err := reconciler.Reconcile(ctx, req)
		switch {
		case !OnlyConflicts(err):
			conflicts.Forget(req)
		case conflicts.NumRequeues(req) < maxConflicts:
			ctrl.LoggerFrom(ctx).V(4).Info("Object is outdated, retrying", "cause", err.Error())
			return ResultAfter(earlierRetry(conflicts.When(req), result.RequeueAfter)), nil
		}
		if err != nil {
			return ctrl.Result{}, err // controller-runtime ignores the delay, and would use the priority
		}
		return result, nil
	})
}

// earlierRetry returns the delay until the next reconcile: the earlier of both delays, but at least
// minConflictRetry, so that repeated conflicts are slowed down. A requested delay of zero means none.
func earlierRetry(retry, requested time.Duration) time.Duration {
	if requested <= 0 {
		return retry
	}
	return min(retry, max(requested, minConflictRetry))
}

// OnlyConflicts reports whether err is a conflict, or joins nothing but conflicts. It is false for nil.
func OnlyConflicts(err error) bool {
	switch e := err.(type) { //nolint:errorlint // every error of the tree is checked, not the first match
	case nil:
		return false
	case apierrors.APIStatus:
		return apierrors.IsConflict(err)
	case interface{ Unwrap() []error }:
		for _, joined := range e.Unwrap() {
			if !OnlyConflicts(joined) {
				return false
			}
		}
		return true
	case interface{ Unwrap() error }:
		return OnlyConflicts(e.Unwrap())
	}
	return false
}
