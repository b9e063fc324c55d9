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
	// staleRetry is when a reconcile that met a conflict is tried again at the latest, and twice as long each further
	// time, until staleRetryMax. Usually the change that the cache did not know yet arrives before that and reconciles
	// anyway; on a hub that is busy all caches may be behind by a minute, and each try is one more write to it.
	staleRetry, staleRetryMax = time.Second, 30 * time.Second
	// staleTries is how many conflicts in a row are taken for an outdated cache: those of a minute and a half. What
	// goes on conflicting is an error, which is logged, counted, and tried again with back-off.
	staleTries = 7
)

// TolerateConflicts wraps a reconciler so that a conflict is no failure: the API server refused a write that was based
// on an outdated object, as happens every day where several controllers write to one object. What the reconciler wants
// to come back for earlier, it comes back for.
func TolerateConflicts(reconciler reconcile.Reconciler) reconcile.Reconciler {
	inARow := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](staleRetry, staleRetryMax)
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		result, err := reconciler.Reconcile(ctx, req)
		switch {
		case !OnlyConflicts(err):
			inARow.Forget(req)
		case inARow.NumRequeues(req) < staleTries:
			ctrl.LoggerFrom(ctx).V(4).Info("Based on an outdated object, trying again", "cause", err.Error())
			return ctrl.Result{RequeueAfter: sooner(inARow.When(req), result.RequeueAfter)}, nil
		}
		if err != nil {
			return ctrl.Result{}, err // next to which a result counts for nothing
		}
		return result, nil
	})
}

// sooner is after what time to come back: not at once, for then nothing would slow down what fails.
func sooner(retry, wanted time.Duration) time.Duration {
	if wanted <= 0 {
		return retry
	}
	return min(retry, max(wanted, staleRetry))
}

// OnlyConflicts reports whether an error is a conflict, and each of the errors that were joined in it. There must be an error.
func OnlyConflicts(err error) bool {
	switch e := err.(type) { //nolint:errorlint // every error of the tree is looked at, not the first that fits
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
