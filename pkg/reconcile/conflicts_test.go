package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestTolerateConflicts(t *testing.T) {
	conflict := fmt.Errorf("cannot add the finalizer: %w", apierrors.NewConflict(corev1.Resource("secrets"), "s", errors.New("outdated")))
	for name, tc := range map[string]struct {
		err     error
		retried bool
		failed  bool
	}{
		"one conflict: retried, not reported":          {err: conflict, retried: true},
		"several conflicts":                            {err: errors.Join(nil, conflict, fmt.Errorf("also: %w", conflict)), retried: true},
		"a conflict and another error: fails":          {err: errors.Join(errors.New("no such host"), conflict), failed: true},
		"a conflict wrapped with another error: fails": {err: fmt.Errorf("%w, then %w", conflict, errors.New("no such host")), failed: true},
		"another error: fails":                         {err: errors.New("no such host"), failed: true},
		"no error":                                     {},
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

func TestPersistentConflictBecomesAnError(t *testing.T) {
	g := NewWithT(t)
	var err error = apierrors.NewConflict(corev1.Resource("secrets"), "s", errors.New("outdated"))
	wanted := time.Duration(0)
	r := TolerateConflicts(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
		return ctrl.Result{RequeueAfter: wanted}, err
	}))
	var waits []time.Duration
	tries := func() (n int) {
		waits = nil
		for failed := error(nil); failed == nil && n <= 100; n++ {
			var result ctrl.Result
			result, failed = r.Reconcile(t.Context(), ctrl.Request{})
			waits = append(waits, result.RequeueAfter)
		}
		return n
	}
	g.Expect(tries()).To(Equal(maxConflicts+1), "reported after the last retry")
	const s = time.Second
	g.Expect(waits).To(Equal([]time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s, 0}), "the delay doubles up to its limit")
	_, failed := r.Reconcile(t.Context(), ctrl.Request{})
	g.Expect(failed).To(HaveOccurred(), "reported as long as the conflict persists")

	conflict := err
	err = nil
	_, failed = r.Reconcile(t.Context(), ctrl.Request{})
	g.Expect(failed).NotTo(HaveOccurred())
	err = conflict
	g.Expect(tries()).To(Equal(maxConflicts+1), "a success resets the count")

	for requested, delay := range map[time.Duration]time.Duration{
		time.Millisecond: time.Second, 3 * time.Second: 3 * time.Second, time.Minute: 16 * time.Second,
	} {
		err, wanted = nil, 0
		_, failed = r.Reconcile(t.Context(), ctrl.Request{})
		g.Expect(failed).NotTo(HaveOccurred())
		err, wanted = conflict, requested
		tries()
		g.Expect(waits[4]).To(Equal(delay), "the fifth conflict, with a RequeueAfter of %s", requested)
		g.Expect(waits).To(HaveEach(BeNumerically("<=", max(requested, time.Second))))
	}
}
