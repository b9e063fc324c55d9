package reconcile

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// staleRetry is when a reconcile that met a conflict is tried again at the latest. Usually the change that the cache did not know yet arrives
	// before that and reconciles anyway.
	staleRetry = time.Second
	// staleTries is how many conflicts in a row are taken for an outdated cache. What goes on conflicting is an error, which is logged, counted, and
	// tried again with back-off.
	staleTries = 10
)

// TolerateConflicts wraps a reconciler so that a conflict is no failure: the API server refused a write that was based on an outdated
// object, as happens every day where several controllers write to one object.
func TolerateConflicts(reconciler reconcile.Reconciler) reconcile.Reconciler {
	tries := &inARow{counts: map[ctrl.Request]int{}}
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		result, err := reconciler.Reconcile(ctx, req)
		if !OnlyConflicts(err) {
			tries.end(req)
			return result, err
		}
		if tries.add(req) > staleTries {
			return result, err
		}
		ctrl.LoggerFrom(ctx).V(4).Info("Based on an outdated object, trying again", "cause", err.Error())
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	})
}

// OnlyConflicts tells whether an error is a conflict, and each of the errors that were joined in it. There must be an error.
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

// inARow counts, of each object, how often something happened without anything else between.
type inARow struct {
	mu     sync.Mutex
	counts map[ctrl.Request]int
}

func (r *inARow) add(req ctrl.Request) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[req]++
	return r.counts[req]
}

func (r *inARow) end(req ctrl.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.counts, req)
}
