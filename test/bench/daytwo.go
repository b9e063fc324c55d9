package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// takeHosts deletes a worker and then a control-plane Machine of an installed cluster, whose etcd is real, and waits until they are gone.
func (b *bench) takeHosts(ctx context.Context, cluster *lab.Cluster) error {
	if err := b.untilGone(ctx, cluster, func(m lab.Machine) bool { return !util.IsControlPlaneMachine(m.Machine) }); err != nil {
		return err
	}
	return b.untilGone(ctx, cluster, func(m lab.Machine) bool { return util.IsControlPlaneMachine(m.Machine) })
}

// untilGone deletes the first Machine that is wanted, and waits until it is gone.
func (b *bench) untilGone(ctx context.Context, cluster *lab.Cluster, wanted func(lab.Machine) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, b.options.timeout, fmt.Errorf("not within %s", b.options.timeout))
	defer cancel()
	settled := func(ctx context.Context) (bool, error) { return cluster.EtcdSettled(ctx) == nil, nil }
	if err := wait.PollUntilContextCancel(ctx, time.Second, true, settled); err != nil {
		return fmt.Errorf("etcd of cluster %s is not settled: %w", cluster.Key(), err)
	}
	s, err := cluster.State(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(s.Machines, wanted)
	if i < 0 {
		return fmt.Errorf("cluster %s has no Machine to be deleted", cluster.Key())
	}
	gone := s.Machines[i]
	if err := cluster.DeleteMachine(ctx, gone); err != nil {
		return err
	}
	return cluster.Wait(ctx, "without Machine "+gone.Name, func(s *lab.State) bool {
		return !slices.ContainsFunc(s.Machines, func(m lab.Machine) bool { return m.UID == gone.UID })
	})
}

// seeDeletion: a control-plane host is released when it has left etcd, for which Cluster API waits. With the whole Cluster nobody waits.
func (o *observer) seeDeletion(v *clusterv1.Machine, at time.Time) {
	if v.DeletionTimestamp.IsZero() || !util.IsControlPlaneMachine(v) {
		return
	}
	if _, held := v.Annotations[controlplanev1.EtcdMemberHookAnnotation]; held {
		waits := conditions.GetReason(v, clusterv1.MachineDeletingCondition) == clusterv1.MachineDeletingWaitingForPreTerminateHookReason
		o.note(waitsForHook, name(v), waits, at)
	} else if _, waited := o.since(fact{waitsForHook, name(v)}); waited {
		o.act(effect{handOver: memberRemoved, subject: name(v), at: at, needs: []need{{{waitsForHook, name(v)}}}})
	}
}
