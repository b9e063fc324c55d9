package controlplane

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// deleteCluster begins the deletion of the whole cluster.
func (h *hub) deleteCluster() {
	h.t.Helper()
	c := &clusterv1.Cluster{}
	h.get("cluster1", c)
	c.Finalizers = []string{clusterv1.ClusterFinalizer}
	h.Expect(h.Update(h.t.Context(), c)).To(Succeed())
	h.Expect(h.Delete(h.t.Context(), c)).To(Succeed())
}

func TestMachineOfDeletedClusterIsWrittenOnce(t *testing.T) {
	h := newInstalledHub(t)
	now := time.Now()
	h.r.writer.Recent = reconcile.NewRecentWrites(&testClock{now: func() time.Time { return now }})
	h.deleteCluster()
	once := []string{"apply", "apply", "apply"}
	for _, name := range h.names() {
		once = append(once, "patch "+name) // the protection of its infra machine ends
	}
	written := func() []string {
		return slices.DeleteFunc(slices.Clone(h.writes), func(w string) bool {
			return w != "apply" && !slices.Contains(h.names(), strings.TrimPrefix(w, "patch "))
		})
	}
	h.writes = nil
	h.reconcile()
	h.Expect(written()).To(Equal(once))
	h.Expect(h.held()).To(BeEmpty())
	for range 2 {
		now = now.Add(reconcile.CacheLag)
		h.reconcile()
		h.Expect(written()).To(Equal(once))
	}
}

// After clusterctl move or a restore another client owns the annotation. An apply without the annotation does
// not remove it.
func TestForeignHooksAreRemovedFromDeletedCluster(t *testing.T) {
	h := newInstalledHub(t)
	now := time.Now()
	h.r.writer.Recent = reconcile.NewRecentWrites(&testClock{now: func() time.Time { return now }})
	for _, m := range h.machines() {
		m.ManagedFields = nil
		m.Annotations = map[string]string{controlplanev1.EtcdMemberHookAnnotation: "", "others": ""}
		h.Expect(h.Update(t.Context(), &m, client.FieldOwner("clusterctl"))).To(Succeed())
	}
	h.deleteCluster()
	for range 3 {
		h.reconcile()
		now = now.Add(reconcile.CacheLag)
	}
	h.Expect(h.held()).To(BeEmpty())
}
