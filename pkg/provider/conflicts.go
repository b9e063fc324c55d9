package provider

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// staleRetry is when a reconcile that met a conflict is tried again at the latest. Usually the change that the cache did not know yet arrives
// before that and reconciles anyway.
const staleRetry = time.Second

// TolerateConflicts wraps a reconciler so that a conflict is no failure: the API server refused a write that was based on an outdated
// object, as happens every day where several controllers write to one object.
func TolerateConflicts(reconciler reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		result, err := reconciler.Reconcile(ctx, req)
		if apierrors.IsConflict(err) {
			ctrl.LoggerFrom(ctx).V(4).Info("Based on an outdated object, trying again", "cause", err.Error())
			return ctrl.Result{RequeueAfter: staleRetry}, nil
		}
		return result, err
	})
}
