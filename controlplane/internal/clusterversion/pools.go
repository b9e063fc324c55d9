package clusterversion

import (
	"context"
	"errors"
	"fmt"
	"time"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/upgrade"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
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

// ResumePools ends the pauses of pools that have our marks. A field that the user also owns stays.
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
			if err := applyPool(ctx, conn.Client, pool, nil); err != nil {
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
		if err := applyPool(ctx, c, pool, pause); err != nil {
			return fmt.Errorf("cannot pause MachineConfigPool %s of the workload cluster: %w", name, err)
		}
	}
	return nil
}

// applyPool applies a pause with our marks to the pool that was read. A pause of nil removes our fields: a field stays if
// another client owns it, too.
func applyPool(ctx context.Context, c client.Client, pool *machineconfigurationv1.MachineConfigPool, pause *workload.PoolPause) error {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(machineconfigurationv1.GroupVersion.WithKind("MachineConfigPool"))
	u.SetName(pool.Name)
	u.SetUID(pool.UID) // a deleted pool is not created again
	u.SetResourceVersion(pool.ResourceVersion)
	if pause != nil {
		u.SetAnnotations(map[string]string{
			objects.PausedUntilAnnotation: pause.Until, objects.PausedSinceAnnotation: pause.Since.UTC().Format(time.RFC3339),
		})
		u.Object["spec"] = map[string]any{"paused": true}
	}
	// The machine config operator owns paused: false of the pools that it creates.
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), fieldOwner, client.ForceOwnership) //nolint:wrapcheck // by the callers
}
