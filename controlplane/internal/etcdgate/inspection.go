package etcdgate

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcd"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// Inspection is an inspection of a cluster that has begun for a task. End ends it.
type Inspection struct {
	gate    *Gate
	scope   *scope.Scope
	task    tasks.Task
	release func()
}

// End releases the slot of the inspection for other clusters.
func (i *Inspection) End() { i.release() }

// Block reports the blocker of the task, and schedules the next inspection unless a watched object will show that the
// blocker has ended.
func (i *Inspection) Block(by decision.Blocker) { i.block(by, "") }

func (i *Inspection) block(by decision.Blocker, failure string) {
	message := bound.Message(by.Message)
	i.scope.Found.Block(i.task, by.Reason, message)
	i.again(result{reason: by.Reason, message: message, failure: failure}, by.Watched)
}

// Decided records a decision that a condition of its own reports, and schedules the next inspection unless the decision
// is watched. err is the error of reading etcd, or nil. It is logged when it changes.
func (i *Inspection) Decided(ctx context.Context, by decision.Blocker, machine string, err error) {
	found := result{reason: by.Reason, message: by.Message}
	if err != nil {
		found.failure = i.describe(ctx, err, "Cannot inspect etcd for the remediation of an unhealthy Machine", "Machine", machine)
	}
	i.again(found, by.Watched)
}

// Failed reports that etcd could not be read or changed. The error is logged when it changes.
func (i *Inspection) Failed(ctx context.Context, step removal.Step, err error) {
	failure := i.describe(ctx, err, "Cannot inspect etcd or change its members", "Machine", step.Machine.Name, "step", step.Action)
	i.block(step.Machine.NotTouched(decision.Wait(controlplanev1.EtcdUnknownReason, "%s. The provider retries", failure)), failure)
}

// Etcd returns the observed etcd. It returns nil if etcd cannot be read, and reports the cause for the Machine.
func (i *Inspection) Etcd(ctx context.Context, about quorum.Machine) *workload.Etcd {
	seen, err := i.gate.See(ctx, i.scope)
	switch {
	case errors.Is(err, cluster.ErrNotConnected):
		i.Block(about.NotTouched(Disconnected(i.scope)))
		return nil
	case err != nil:
		i.Failed(ctx, removal.Step{Machine: about}, err)
		return nil
	}
	return seen
}

// describe returns the description of an error, and logs the error if the last inspection described another one.
func (i *Inspection) describe(ctx context.Context, err error, message string, keysAndValues ...any) string {
	failure := etcd.Describe(err)
	if last, _ := i.gate.last.Get(key{i.scope.Stored.UID, i.task}); last.failure != failure {
		ctrl.LoggerFrom(ctx).Error(err, message, keysAndValues...)
	}
	return failure
}

func (i *Inspection) again(found result, watched bool) {
	if left := i.gate.record(key{i.scope.Stored.UID, i.task}, found); !watched {
		i.scope.Again.In(left)
	}
}

// See reads etcd, unless this reconcile has read etcd before and has not changed it since.
func (g *Gate) See(ctx context.Context, s *scope.Scope) (*workload.Etcd, error) {
	if (s.Inspection == scope.EtcdInspection{}) {
		seen, err := g.Read(ctx, s)
		s.Inspection = scope.EtcdInspection{Etcd: &seen, Err: err}
	}
	return s.Inspection.Etcd, s.Inspection.Err
}

// Read reads etcd, and records whether a member does not answer.
func (g *Gate) Read(ctx context.Context, s *scope.Scope) (workload.Etcd, error) {
	seen, err := g.etcds.Observe(ctx, s.ClusterKey())
	s.MemberSilent = s.MemberSilent || err == nil && seen.Silent()
	return seen, err
}

// Disconnected returns the blocker of a host's release while the API server of the cluster does not answer.
func Disconnected(s *scope.Scope) decision.Blocker {
	message := "the API server of the cluster does not answer, so the state of etcd is unknown"
	if s.Workload.Failure != nil {
		message += ": " + s.Workload.Failure.Message
	}
	return decision.Watch(controlplanev1.ConnectionDownReason, "%s. Waiting until the API server answers. If etcd has lost its "+
		"quorum, restore etcd as OpenShift documents it. If the cluster is lost, delete the Cluster, which wipes its hosts. "+
		"If etcd certainly does not need the host, remove the annotation %s from its Machine: the host is then wiped",
		message, controlplanev1.EtcdMemberHookAnnotation)
}
