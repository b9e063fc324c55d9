package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// The cache still has a deleted control plane, and another control plane of its name exists by now.
func TestNoObjectOfASuccessorIsDeleted(t *testing.T) {
	for name, behind := range map[string]func(client.Client) client.Client{
		"the cache has the objects of the successor": func(c client.Client) client.Client { return c },
		"the cache has no object of the successor yet": func(c client.Client) client.Client {
			c = kubetest.EmptyCacheOf[*hivev1.ClusterDeployment, *hivev1.ClusterDeploymentList](c)
			c = kubetest.EmptyCacheOf[*hivev1.ClusterImageSet, *hivev1.ClusterImageSetList](c)
			return kubetest.EmptyCacheOf[*hiveext.AgentClusterInstall, *hiveext.AgentClusterInstallList](c)
		},
		"the cache has the ClusterImageSet of the successor": func(c client.Client) client.Client {
			c = kubetest.EmptyCacheOf[*hivev1.ClusterDeployment, *hivev1.ClusterDeploymentList](c)
			return kubetest.EmptyCacheOf[*hiveext.AgentClusterInstall, *hiveext.AgentClusterInstallList](c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, world(nil)...).withTime()
			h.reconcile()
			deleted := h.controlPlane()
			deleted.UID, deleted.DeletionTimestamp = "former", ptr.To(metav1.Now())
			h.cached.Client = kubetest.EmptyCacheOf[*clusterv1.Machine, *clusterv1.MachineList](h.cached.Client)
			h.cached.Client = behind(kubetest.StaleCacheOf(h.cached.Client, deleted, (*controlplanev1.OpenshiftAssistedControlPlane).DeepCopyInto))
			writes := len(h.writes)
			for range 3 {
				h.reconcile()
			}
			h.registration()
			sets := &hivev1.ClusterImageSetList{}
			h.Expect(h.List(t.Context(), sets)).To(Succeed())
			h.Expect(sets.Items).NotTo(BeEmpty())
			h.Expect(h.machines()).To(HaveLen(3))
			h.Expect(h.writes[writes:]).To(BeEmpty())
		})
	}
}

// The cache still has a deleted Cluster, but all other objects of its successor.
func TestInstallationOfASuccessorIsNotBlocked(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	deleted := &clusterv1.Cluster{}
	h.get("cluster1", deleted)
	deleted.UID, deleted.DeletionTimestamp = "former", ptr.To(metav1.Now())
	upToDate := h.cached.Client
	h.cached.Client = kubetest.StaleCacheOf(h.cached.Client, deleted, (*clusterv1.Cluster).DeepCopyInto)
	h.Expect(h.reconcile().RequeueAfter).To(BeNumerically("<=", reconcile.CacheLag))
	_, install := h.registration()
	h.Expect(install.Spec.HoldInstallation).To(BeFalse())
	h.cached.Client = upToDate
	h.deleteCluster()
	h.reconcile()
	_, install = h.registration()
	h.Expect(install.Spec.HoldInstallation).To(BeTrue())
}

// The cache still has the control plane right after its finalizer was removed.
func TestFinishedDeletionIsNotRepeated(t *testing.T) {
	h := newHub(t, world(nil)...)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.reconcile()
	last := h.controlPlane()
	h.Expect(h.Delete(t.Context(), last)).To(Succeed())
	for h.Get(t.Context(), client.ObjectKeyFromObject(last), &controlplanev1.OpenshiftAssistedControlPlane{}) == nil {
		last = h.controlPlane()
		now = now.Add(reconcile.CacheLag)
		h.reconcile()
	}
	h.cached.Client = kubetest.StaleCacheOf(h.cached.Client, last, (*controlplanev1.OpenshiftAssistedControlPlane).DeepCopyInto)
	writes := len(h.writes)
	h.Expect(h.reconcile().RequeueAfter).To(Equal(reconcile.CacheLag))
	h.Expect(h.writes[writes:]).To(BeEmpty())
}

// A control plane is deleted right after an object was created for it.
func TestDeletionIncludesObjectsThatTheCacheLacks(t *testing.T) {
	left := func(h *hub, list client.ObjectList) int {
		h.Expect(h.List(t.Context(), list)).To(Succeed())
		return meta.LenList(list)
	}
	for kind, tc := range map[string]struct {
		late func(client.Client) client.Client
		list client.ObjectList
	}{
		"ClusterDeployment": {kubetest.EmptyCacheOf[*hivev1.ClusterDeployment, *hivev1.ClusterDeploymentList], &hivev1.ClusterDeploymentList{}},
		"AgentClusterInstall": {
			kubetest.EmptyCacheOf[*hiveext.AgentClusterInstall, *hiveext.AgentClusterInstallList], &hiveext.AgentClusterInstallList{},
		},
		"ClusterImageSet": {kubetest.EmptyCacheOf[*hivev1.ClusterImageSet, *hivev1.ClusterImageSetList], &hivev1.ClusterImageSetList{}},
		"Machine":         {kubetest.EmptyCacheOf[*clusterv1.Machine, *clusterv1.MachineList], &clusterv1.MachineList{}},
	} {
		t.Run(kind, func(t *testing.T) {
			h := newHub(t, world(nil)...).withTime()
			h.reconcile()
			h.Expect(left(h, tc.list)).NotTo(BeZero())
			h.cached.Client = tc.late(h.cached.Client)
			cp := h.controlPlane()
			h.Expect(h.Delete(t.Context(), cp)).To(Succeed())
			for range 10 {
				h.endDeferral()
				before := left(h, tc.list)
				again := h.reconcile().RequeueAfter
				if apierrors.IsNotFound(h.Get(t.Context(), client.ObjectKeyFromObject(cp), cp.DeepCopy())) {
					h.Expect(before).To(BeZero(), "the deletion ends when no object is left")
					return
				}
				h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.DeletingCondition)).NotTo(BeEmpty())
				if left(h, tc.list) < before {
					h.Expect(again).To(BeNumerically("<=", reconcile.CacheLag), "no event reports the end of the deletion")
				}
			}
			t.Error("the deletion of the control plane does not end")
		})
	}
}
