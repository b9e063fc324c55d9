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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/findings"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// report writes the status, and then emits the queued Events. Each reconcile calls report, also after errors.
func (r *Reconciler) report(ctx context.Context, s *scope.Scope, failure error) error {
	written, err := r.writeStatus(ctx, s, failure)
	reconcile.EmitEvents(r.Recorder, s.Stored, s.Events(), written)
	return err
}

// writeStatus composes the status, and writes it if it changed. It returns false if the status differs from the stored
// one. An urgent change is written at once, any other change once it lasts.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope.Scope, failure error) (written bool, err error) {
	if s.Deleting() && !controllerutil.ContainsFinalizer(s.Stored, bootstrapv1.OpenshiftAssistedConfigFinalizer) {
		return false, nil
	}
	if s.Paused() {
		meta.SetStatusCondition(&s.Status.Conditions, contract.PausedCondition(s.Cluster, s.Config))
	} else {
		s.Status.Conditions = status.Summarize(s.Facts, &s.Findings, failure)
		s.Status.ObservedGeneration = s.Config.Generation
		s.Status.HostName, s.Status.NodeName = s.HostName(s.Agent), s.NodeName()
	}
	bound.Conditions(s.Status.Conditions)
	if left := r.deferReport(s); left > 0 {
		s.Again.In(left)
		r.remember(s, &s.Config.Status)
		return false, nil
	}
	reported := s.Stored.DeepCopy()
	reported.Status = s.Status
	if err := apply.PatchStatus(ctx, r.Client, s.Stored, reported); err != nil {
		return false, err
	}
	problems := func(of *bootstrapv1.OpenshiftAssistedConfig) []metav1.Condition {
		return status.Problems(of.Status.Conditions, s.Deleting())
	}
	before, after := problems(s.Stored), problems(reported)
	s.ProblemEvents(s.Status.HostName, before, after)
	measure.CountProblems(measuredKind, before, after)
	measure.Host(stagesOfHost(s.Stored, reported))
	measure.Reactions(s.Reactions)
	r.logged(s.Stored, reported)
	r.remember(s, &s.Status)
	r.deferred.Reset(s.Key())
	return true, nil
}

// deferReport returns how long the new status waits to be written.
func (r *Reconciler) deferReport(s *scope.Scope) time.Duration {
	switch {
	case equality.Semantic.DeepEqual(&s.Config.Status, &s.Status):
		return 0
	case s.Paused() || urgent(s):
		return r.deferred.UrgentDelay(s.Key())
	}
	return r.deferred.DeferrableDelay(s.Key())
}

// urgent reports whether a client waits for the change, or a user has to act upon the change.
func urgent(s *scope.Scope) bool {
	before, after := &s.Config.Status, &s.Status
	switch {
	case slices.ContainsFunc(s.Events(), func(e findings.Event) bool { return e.Type == corev1.EventTypeWarning }),
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
	return !deleting && status.IsDeferrable(c.Reason)
}
