package clusterversion

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// workerPool returns an updated pool of one Node.
func workerPool(change func(*machineconfigurationv1.MachineConfigPool)) *machineconfigurationv1.MachineConfigPool {
	pool := &machineconfigurationv1.MachineConfigPool{}
	pool.Name, pool.Annotations = "worker", map[string]string{"mine": ""}
	pool.Status.MachineCount = 1
	pool.Status.Conditions = []machineconfigurationv1.MachineConfigPoolCondition{{
		Type: machineconfigurationv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue,
	}}
	if change != nil {
		change(pool)
	}
	return pool
}

func (c *fakeCluster) pool() *machineconfigurationv1.MachineConfigPool {
	pool := &machineconfigurationv1.MachineConfigPool{}
	c.Expect(c.Get(context.Background(), client.ObjectKey{Name: "worker"}, pool)).To(Succeed())
	return pool
}

func pauseWorkers() workload.UpdateRequest {
	return workload.UpdateRequest{Pause: &workload.PoolPause{Pools: []string{"worker"}, Until: "v1.33.5", Since: time.Unix(1000, 0)}}
}

func TestPoolsArePausedAndResumed(t *testing.T) {
	c := newCluster(t, workerPool(nil))
	c.Expect(c.RequestUpdate(t.Context(), client.ObjectKey{}, pauseWorkers())).To(Succeed())
	c.Expect(c.pool().Spec.Paused).To(BeTrue())
	c.Expect(objects.PoolOf(c.pool())).To(And(HaveField("Paused", true), HaveField("PausedUntil", "v1.33.5"),
		HaveField("PausedSince.Unix()", BeEquivalentTo(1000))))

	c.Expect(c.ResumePools(t.Context(), client.ObjectKey{}, []string{"worker", "deleted"})).To(Succeed())
	c.Expect(c.pool().Spec.Paused).To(BeFalse())
	c.Expect(c.pool().Annotations).To(HaveLen(1), "only the user's annotation is left")
}

func TestPauseOfTheUserStays(t *testing.T) {
	c := newCluster(t, workerPool(func(pool *machineconfigurationv1.MachineConfigPool) { pool.Spec.Paused = true }))
	c.Expect(c.RequestUpdate(t.Context(), client.ObjectKey{}, pauseWorkers())).To(Succeed())
	c.Expect(c.pool().Annotations).To(HaveLen(1), "no mark")
	c.Expect(c.ResumePools(t.Context(), client.ObjectKey{}, []string{"worker"})).To(Succeed())
	c.Expect(c.pool().Spec.Paused).To(BeTrue())
}

// A user who resumes a pool, and pauses it again, owns the pause.
func TestPauseThatTheUserTookOverStays(t *testing.T) {
	c := newCluster(t, workerPool(nil))
	c.Expect(c.RequestUpdate(t.Context(), client.ObjectKey{}, pauseWorkers())).To(Succeed())
	for _, patch := range []string{`{"spec":{"paused":false}}`, `{"spec":{"paused":true}}`} {
		c.Expect(c.Patch(t.Context(), c.pool(), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("kubectl"))).To(Succeed())
	}
	c.Expect(c.ResumePools(t.Context(), client.ObjectKey{}, []string{"worker"})).To(Succeed())
	c.Expect(c.pool().Spec.Paused).To(BeTrue())
	c.Expect(c.pool().Annotations).To(HaveLen(1))
}

// A user who applies the pause, too, owns it together with this provider.
func TestPauseThatTheUserAppliesStays(t *testing.T) {
	c := newCluster(t, workerPool(nil))
	c.Expect(c.RequestUpdate(t.Context(), client.ObjectKey{}, pauseWorkers())).To(Succeed())
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"paused": true}}}
	u.SetGroupVersionKind(machineconfigurationv1.GroupVersion.WithKind("MachineConfigPool"))
	u.SetName("worker")
	c.Expect(c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("gitops"))).To(Succeed())
	c.Expect(c.ResumePools(t.Context(), client.ObjectKey{}, []string{"worker"})).To(Succeed())
	c.Expect(c.pool().Spec.Paused).To(BeTrue())
	c.Expect(c.pool().Annotations).To(HaveLen(1))
}

func TestPoolThatIsNotUpdatedIsNotPaused(t *testing.T) {
	for situation, change := range map[string]func(*machineconfigurationv1.MachineConfigPool){
		"behind": func(pool *machineconfigurationv1.MachineConfigPool) { pool.Status.Conditions = nil },
		"degraded": func(pool *machineconfigurationv1.MachineConfigPool) {
			pool.Status.Conditions = append(pool.Status.Conditions, machineconfigurationv1.MachineConfigPoolCondition{
				Type: machineconfigurationv1.MachineConfigPoolDegraded, Status: corev1.ConditionTrue,
			})
		},
	} {
		t.Run(situation, func(t *testing.T) {
			c := newCluster(t, workerPool(change))
			c.Expect(apierrors.IsConflict(c.RequestUpdate(t.Context(), client.ObjectKey{}, pauseWorkers()))).To(BeTrue())
			c.Expect(c.pool().Spec.Paused).To(BeFalse())
		})
	}
}
