package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/cluster-api/util"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// addWorker adds a worker to an installed cluster with a late worker, and waits until the worker runs.
func (b *bench) addWorker(ctx context.Context, cluster *lab.Cluster) error {
	return b.scale(ctx, cluster, workers+2)
}

// removeWorker removes the worker, and waits until its host is free.
func (b *bench) removeWorker(ctx context.Context, cluster *lab.Cluster) error {
	if err := b.scale(ctx, cluster, workers+1); err != nil {
		return err
	}
	return b.awaitSpare(ctx, cluster)
}

func (b *bench) scale(ctx context.Context, cluster *lab.Cluster, wanted int) error {
	if err := cluster.Scale(ctx, int32(wanted)); err != nil {
		return err
	}
	return cluster.Wait(ctx, fmt.Sprintf("of %d workers", wanted), func(s *lab.State) bool {
		running := slices.DeleteFunc(slices.Clone(s.Machines), func(m lab.Machine) bool { return m.IsControlPlane() })
		return len(running) == wanted && s.Available()
	})
}

// awaitSpare waits until a host is free.
func (b *bench) awaitSpare(ctx context.Context, cluster *lab.Cluster) error {
	return poll(ctx, fmt.Sprintf("cluster %s has no spare host", cluster.Key()), func(ctx context.Context) (bool, error) {
		free, err := cluster.FreeHosts(ctx)
		return free > 0, err
	})
}

// replaceMaster deletes a control-plane Machine of an installed cluster with a real etcd. It waits until another Machine
// replaced it, and its host is a member of etcd.
func (b *bench) replaceMaster(ctx context.Context, cluster *lab.Cluster) error {
	if err := b.awaitEtcd(ctx, cluster); err != nil {
		return err
	}
	s, err := cluster.State(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(s.Machines, func(m lab.Machine) bool { return util.IsControlPlaneMachine(m.Machine) })
	if i < 0 {
		return fmt.Errorf("cluster %s has no control-plane Machine", cluster.Key())
	}
	deleted := s.Machines[i]
	if err := cluster.DeleteMachine(ctx, deleted); err != nil {
		return err
	}
	err = cluster.Wait(ctx, "complete without Machine "+deleted.Name, func(s *lab.State) bool {
		return s.Available() && !slices.ContainsFunc(s.Machines, func(m lab.Machine) bool { return m.UID == deleted.UID })
	})
	if err != nil {
		return err
	}
	return b.awaitEtcd(ctx, cluster)
}

func (b *bench) awaitEtcd(ctx context.Context, cluster *lab.Cluster) error {
	return poll(ctx, fmt.Sprintf("etcd of cluster %s is not settled", cluster.Key()), func(ctx context.Context) (bool, error) {
		return cluster.EtcdSettled(ctx) == nil, nil
	})
}

func poll(ctx context.Context, otherwise string, done wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextCancel(ctx, time.Second, true, done); err != nil {
		return fmt.Errorf("%s: %w", otherwise, err)
	}
	return nil
}
