package controlplane

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcd"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
)

const (
	// etcdHealthOwner owns the condition EtcdMemberHealthy of Machines.
	etcdHealthOwner = FieldOwner + "-etcd"
	// longestMemberPause is the longest time between two inspections of members while the etcd operator is not degraded.
	longestMemberPause = 10 * time.Minute
)

// memberInspection is the last inspection of the members.
type memberInspection struct {
	// seen is nil when the last inspection failed, failure is why, in our own words.
	seen    *facts.Etcd
	failure string
	// next is the time of the next inspection, read that of the last one that did not fail.
	next, read time.Time
	// pause is the time between the last inspection and the next. operator is what ClusterOperator etcd reported at the
	// last: another report makes the next urgent.
	pause    time.Duration
	operator reported
}

// reported is what ClusterOperator etcd reports, as far as it decides when members are read.
type reported struct{ degraded, settled bool }

func reportedBy(o facts.EtcdOperator) reported {
	return reported{!o.DegradedSince.IsZero(), o.Settled()}
}

// left is the time until the next inspection.
func (l memberInspection) left(now time.Time, operator reported) time.Duration {
	left := l.next.Sub(now)
	if operator != l.operator {
		left = min(left, inspectionInterval-l.pause+left)
	}
	return left
}

// markEtcdMembers writes the condition EtcdMemberHealthy of the Machines. Members are read only while that can change a
// condition: the operator, which is watched, names them only in free text.
func (r *Reconciler) markEtcdMembers(ctx context.Context, s *scope) (bool, error) {
	if !s.Installed() || s.ClusterDeleting() || s.Fenced() {
		return true, nil
	}
	last := r.inspectMembersIfDue(ctx, s)
	s.found.Etcd = last.seen
	left := facts.GracePeriod - r.now().Sub(slices.MaxFunc([]time.Time{last.read, r.started}, time.Time.Compare))
	for i, m := range s.found.Machines {
		wanted := status.EtcdMember(s.Facts, m, last.seen, left <= 0, r.now())
		if wanted == nil {
			continue
		}
		wanted.ObservedGeneration = m.Generation
		if err := r.setMachineCondition(ctx, s, i, *wanted, etcdHealthOwner); err != nil {
			return false, err
		}
	}
	if left > 0 && slices.ContainsFunc(s.found.Machines, memberIsDown) {
		s.again.In(left)
	}
	return true, nil
}

func memberIsDown(m *clusterv1.Machine) bool {
	return m.DeletionTimestamp.IsZero() && conditions.IsFalse(m, controlplanev1.EtcdMemberHealthyCondition)
}

// inspectMembersIfDue returns the last inspection of the members, at most a minute old while etcd is degraded, and none
// while nothing depends on it.
func (r *Reconciler) inspectMembersIfDue(ctx context.Context, s *scope) memberInspection {
	key := s.stored.UID
	last, _ := r.inspections.members.Get(key)
	if r.now().Sub(last.read) >= facts.GracePeriod {
		last.seen = nil // inspections of many clusters wait for each other: a member may have recovered meanwhile
	}
	switch left := last.left(r.now(), reportedBy(s.Workload.Etcd)); {
	case !s.Workload.Connected, !s.Workload.Etcd.Known:
		last.seen = nil // what was seen may have become wrong
		return last
	case !status.InspectsMembers(s.Facts, s.found.Machines):
		r.inspections.members.Remove(key)
		return memberInspection{}
	case left > 0:
		s.again.In(left)
		return last
	case !r.inspections.free.TryAcquire(1):
		s.again.In(r.inspections.turn(s.membersDeferrable()))
		return last
	}
	defer r.inspections.free.Release(1)
	last = r.inspectMembers(ctx, s, last)
	r.inspections.members.Add(key, last)
	s.again.In(last.pause)
	return last
}

// membersDeferrable reports whether nothing shows that a member is down.
func (s *scope) membersDeferrable() bool {
	return s.Workload.Etcd.DegradedSince.IsZero() && !slices.ContainsFunc(s.found.Machines, memberIsDown)
}

// logMembersUnread logs why the members could not be read. That an object does not exist is no error: a cluster that
// has just been installed may not have all of them yet, and a cluster of a demonstration has none.
func logMembersUnread(ctx context.Context, err error) {
	log := ctrl.LoggerFrom(ctx)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		log.Info("The condition EtcdMemberHealthy is not known yet: the cluster lacks an object by which etcd is read", "reason", etcd.Describe(err))
		return
	}
	log.Error(err, "Cannot read the etcd members for the condition EtcdMemberHealthy")
}

// inspectMembers reads the members. While etcd is not degraded and no member was reported as down, inspections become
// rarer: the credentials may not suffice, or a host may never become a member.
func (r *Reconciler) inspectMembers(ctx context.Context, s *scope, last memberInspection) memberInspection {
	pause, operator := maxInspectionDelay, reportedBy(s.Workload.Etcd)
	deferrable := s.membersDeferrable()
	if deferrable && operator == last.operator {
		pause = min(max(2*last.pause, maxInspectionDelay), longestMemberPause)
	}
	now := r.now()
	look := memberInspection{next: now.Add(pause), read: last.read, pause: pause, operator: operator}
	seen, err := r.seeEtcd(ctx, s)
	if err != nil {
		look.failure = etcd.Describe(err)
		if deferrable {
			look.pause = longestMemberPause // the cluster may have no etcd that can be read with these credentials
			look.next = now.Add(look.pause)
		}
		if look.failure != last.failure {
			logMembersUnread(ctx, err)
		}
		return look
	}
	look.seen = seen
	if seen.Readable() {
		look.read = now
	}
	return look
}
