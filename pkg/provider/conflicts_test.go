package provider

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestTolerateConflicts(t *testing.T) {
	conflict := fmt.Errorf("failed to add the finalizer: %w", apierrors.NewConflict(corev1.Resource("secrets"), "s", errors.New("outdated")))
	for name, tc := range map[string]struct {
		err     error
		retried bool
		failed  bool
	}{
		"a conflict is tried again, not reported": {err: conflict, retried: true},
		"one of several errors is a conflict":     {err: errors.Join(nil, conflict), retried: true},
		"another error stays one":                 {err: errors.New("no such host"), failed: true},
		"no error":                                {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := TolerateConflicts(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{}, tc.err }))
			result, err := r.Reconcile(t.Context(), ctrl.Request{})
			g.Expect(err != nil).To(Equal(tc.failed))
			g.Expect(result.IsZero()).To(Equal(!tc.retried))
		})
	}
}
