package etcdgate

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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/etcdmember"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// LongestMemberPause is the longest time between two inspections of members while the etcd operator is not degraded.
const LongestMemberPause = 10 * time.Minute

// MemberInspection is the last inspection of the members.
type MemberInspection struct {
	// Seen is nil when the last inspection failed; failure then describes the cause without ports and times.
	Seen    *workload.Etcd
	failure string
	// next is the time of the next inspection, Read the time of the last inspection that read the members.
	next, Read time.Time
	// pause is the time between the last inspection and the next. operator is the state that ClusterOperator etcd
	// reported at the last inspection: a changed state makes the next inspection urgent.
	pause    time.Duration
	operator reported
}

// reported is the state in ClusterOperator etcd that decides when members are read.
type reported struct{ degraded, settled bool }

func reportedBy(o workload.EtcdOperator) reported {
	return reported{!o.DegradedSince.IsZero(), o.Settled()}
}

// left returns the time until the next inspection.
func (l MemberInspection) left(now time.Time, operator reported) time.Duration {
	left := l.next.Sub(now)
	if operator != l.operator {
		left = min(left, Interval-l.pause+left)
	}
	return left
}

// MemberIsDown reports whether a member of etcd was reported as down for a Machine that stays.
func MemberIsDown(m *clusterv1.Machine) bool {
	return m.DeletionTimestamp.IsZero() && conditions.IsFalse(m, controlplanev1.EtcdMemberHealthyCondition)
}

// InspectMembers returns the last inspection of the members, which is at most a minute old while etcd is degraded. It
// returns no inspection while no condition depends on one.
func (g *Gate) InspectMembers(ctx context.Context, s *scope.Scope) MemberInspection {
	key := s.Stored.UID
	last, _ := g.members.Get(key)
	if g.clock.Now().Sub(last.Read) >= workload.GracePeriod {
		last.Seen = nil // an inspection may wait for those of other clusters, and a member may have recovered meanwhile
	}
	switch left := last.left(g.clock.Now(), reportedBy(s.Workload.Etcd)); {
	case !s.Workload.Connected, !s.Workload.Etcd.Known:
		last.Seen = nil // the observation may be outdated
		return last
	case !etcdmember.NeedsInspection(s.Facts, s.Found.Machines):
		g.members.Remove(key)
		return MemberInspection{}
	case left > 0:
		s.Again.In(left)
		return last
	case !g.free.TryAcquire(1):
		s.Again.In(g.turn(deferrable(s)))
		return last
	}
	defer g.free.Release(1)
	last = g.readMembers(ctx, s, last)
	g.members.Add(key, last)
	s.Again.In(last.pause)
	return last
}

// deferrable reports whether no object reports that a member is down.
func deferrable(s *scope.Scope) bool {
	return s.Workload.Etcd.DegradedSince.IsZero() && !slices.ContainsFunc(s.Found.Machines, MemberIsDown)
}

// logUnread logs why the members could not be read. A missing object is no error: a cluster that was just installed may
// lack it, and a demonstration cluster does lack it.
func logUnread(ctx context.Context, err error) {
	log := ctrl.LoggerFrom(ctx)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		log.Info("The condition EtcdMemberHealthy is not known yet: the cluster lacks an object that is needed to read etcd",
			"reason", etcd.Describe(err))
		return
	}
	log.Error(err, "Cannot read the etcd members for the condition EtcdMemberHealthy")
}

// readMembers reads the members. While etcd is not degraded and no member was reported as down, the time between
// inspections grows. The credentials may not suffice, or a host may never become a member.
func (g *Gate) readMembers(ctx context.Context, s *scope.Scope, last MemberInspection) MemberInspection {
	pause, operator := MaxDelay, reportedBy(s.Workload.Etcd)
	mayWait := deferrable(s)
	if mayWait && operator == last.operator {
		pause = min(max(2*last.pause, MaxDelay), LongestMemberPause)
	}
	now := g.clock.Now()
	inspection := MemberInspection{next: now.Add(pause), Read: last.Read, pause: pause, operator: operator}
	seen, err := g.See(ctx, s)
	if err != nil {
		inspection.failure = etcd.Describe(err)
		if mayWait {
			inspection.pause = LongestMemberPause // the cluster may have no etcd that can be read with these credentials
			inspection.next = now.Add(inspection.pause)
		}
		if inspection.failure != last.failure {
			logUnread(ctx, err)
		}
		return inspection
	}
	inspection.Seen = seen
	if seen.Readable() {
		inspection.Read = now
	}
	return inspection
}
