package hostconfig

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
)

// report writes the status if it changed, and emits the events. An urgent change is written at once, any other
// change once it lasts.
func (r *Reconciler) report(ctx context.Context, s *scope, failure error) error {
	if s.Deleting() && !controllerutil.ContainsFinalizer(s.stored, bootstrapv1.OpenshiftAssistedConfigFinalizer) {
		return nil
	}
	if s.Paused() {
		meta.SetStatusCondition(&s.status.Conditions, contract.PausedCondition(s.Cluster, s.Config))
	} else {
		s.status.Conditions = summarise(s, failure)
		s.status.ObservedGeneration = s.Config.Generation
	}
	bound.Conditions(s.status.Conditions)
	if left := r.deferReport(s); left > 0 {
		s.again.In(left)
		r.remember(s, &s.Config.Status)
	} else {
		reported := s.stored.DeepCopy()
		reported.Status = s.status
		if err := apply.PatchStatus(ctx, r.Client, s.stored, reported); err != nil {
			return err
		}
		measured(s.stored, reported)
		measure.Reactions(s.reactions)
		r.logged(s.stored, reported, s.events)
		r.remember(s, &s.status)
		r.deferred.Reset(keyOf(s.Config))
	}
	for _, e := range s.events {
		r.Recorder.Event(s.stored, e.kind, e.reason, e.message)
	}
	return nil
}

// deferReport returns how long the new status waits to be written.
func (r *Reconciler) deferReport(s *scope) time.Duration {
	switch {
	case equality.Semantic.DeepEqual(&s.Config.Status, &s.status):
		return 0
	case s.Paused() || urgent(s):
		return r.deferred.UrgentDelay(keyOf(s.Config))
	}
	return r.deferred.DeferrableDelay(keyOf(s.Config))
}

// urgent reports whether a client waits for the change, or a user has to act upon the change.
func urgent(s *scope) bool {
	before, after := &s.Config.Status, &s.status
	switch {
	case slices.ContainsFunc(s.events, func(e notice) bool { return e.kind == corev1.EventTypeWarning }),
		before.DataSecretName != after.DataSecretName,
		!equality.Semantic.DeepEqual(before.Initialization, after.Initialization),
		!equality.Semantic.DeepEqual(before.AgentRef, after.AgentRef),
		// A user edited the spec and waits for the result.
		before.ObservedGeneration != after.ObservedGeneration && before.ObservedGeneration != 0:
		return true
	}
	return slices.ContainsFunc(after.Conditions, func(c metav1.Condition) bool {
		was := meta.FindStatusCondition(before.Conditions, c.Type)
		if was != nil && was.Status == c.Status && was.Reason == c.Reason {
			return false // only the message changed
		}
		return !canWait(c) || was != nil && !canWait(*was)
	})
}

// canWait reports whether the report of a condition may be late. Problems and deletions cannot wait.
func canWait(c metav1.Condition) bool {
	deleting := c.Type == bootstrapv1.DeletingCondition && c.Status == metav1.ConditionTrue
	return !deleting && isDeferrable(c.Reason)
}
