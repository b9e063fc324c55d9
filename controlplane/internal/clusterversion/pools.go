package clusterversion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/upgrade"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// ResumePools ends the pauses of MachineConfigPools that this provider began. It does not wait for an upgrade that is blocked.
func (u *Upgrader) ResumePools(ctx context.Context, s *scope.Scope) (bool, error) {
	pools := upgrade.PoolsToResume(s.Facts)
	if len(pools) == 0 {
		return true, nil
	}
	id := fmt.Sprintf("%s resume %v", s.Stored.UID, pools)
	if left := u.backoff.Left(id); left > 0 {
		s.Again.In(left)
		return true, nil
	}
	u.backoff.Record(id)
	s.Again.In(u.backoff.Left(id))
	switch err := u.versions.ResumePools(ctx, s.ClusterKey(), pools); {
	case errors.Is(err, cluster.ErrNotConnected), apierrors.IsConflict(err):
		return true, nil
	case err != nil:
		return false, err
	}
	s.Found.Event(corev1.EventTypeNormal, "WorkerPoolsResumed", "Resumed MachineConfigPools of workers: %s", bound.List(pools))
	return true, nil
}

// ResumePools removes our marks from pools, and ends the pauses that no other client owns.
func (v *Versions) ResumePools(ctx context.Context, key client.ObjectKey, pools []string) error {
	return v.clusters.Connect(ctx, key, func(ctx context.Context, conn *conn.Conn) error {
		for _, name := range pools {
			pool, err := kube.Read(ctx, conn.Client, client.ObjectKey{Name: name}, &machineconfigurationv1.MachineConfigPool{})
			if err != nil {
				return err
			}
			if pool == nil || objects.PoolOf(pool).PausedUntil == "" {
				continue
			}
			spec := map[string]any{}
			switch ours, err := ownsPause(pool); {
			case err != nil:
				return fmt.Errorf("cannot read who paused MachineConfigPool %s of the workload cluster: %w", name, err)
			case ours:
				spec["paused"] = false
			}
			marks := map[string]any{objects.PausedUntilAnnotation: nil, objects.PausedSinceAnnotation: nil}
			if err := patchPool(ctx, conn.Client, pool, marks, spec); err != nil {
				return fmt.Errorf("cannot resume MachineConfigPool %s of the workload cluster: %w", name, err)
			}
		}
		return nil
	})
}

// pausePools pauses pools and marks the pauses as ours. A pool that is paused by now has the pause of the user. It returns a
// conflict for a pool that is not updated, or degraded by now.
func pausePools(ctx context.Context, c client.Client, pause *workload.PoolPause) error {
	for _, name := range pause.Pools {
		pool, err := kube.Read(ctx, c, client.ObjectKey{Name: name}, &machineconfigurationv1.MachineConfigPool{})
		if err != nil {
			return err
		}
		if pool == nil || pool.Spec.Paused {
			continue
		}
		if now := objects.PoolOf(pool); now.Behind || now.Degraded != "" || now.ControlPlane() {
			return apierrors.NewConflict(machineconfigurationv1.Resource("machineconfigpools"), name,
				errors.New("the pool is not updated, or degraded"))
		}
		marks := map[string]any{
			objects.PausedUntilAnnotation: pause.Until, objects.PausedSinceAnnotation: pause.Since.UTC().Format(time.RFC3339),
		}
		if err := patchPool(ctx, c, pool, marks, map[string]any{"paused": true}); err != nil {
			return fmt.Errorf("cannot pause MachineConfigPool %s of the workload cluster: %w", name, err)
		}
	}
	return nil
}

// patchPool writes only the named fields of a pool, unless the pool changed after it was read.
func patchPool(
	ctx context.Context, c client.Client, pool *machineconfigurationv1.MachineConfigPool, annotations, spec map[string]any,
) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": pool.ResourceVersion, "annotations": annotations}, "spec": spec,
	})
	if err != nil {
		return fmt.Errorf("cannot encode the pause: %w", err)
	}
	return c.Patch(ctx, pool, client.RawPatch(types.MergePatchType, patch), fieldOwner) //nolint:wrapcheck // by the callers
}

// ownsPause reports whether this provider, and no other client, owns the field that pauses a pool. A client that changes the
// field, or applies the same value, owns it.
func ownsPause(pool *machineconfigurationv1.MachineConfigPool) (bool, error) {
	managers, err := apply.ManagersOf(pool.ManagedFields)
	return managers.Of("spec", "paused").Equal(sets.New(string(fieldOwner))), err //nolint:wrapcheck // by the caller
}
