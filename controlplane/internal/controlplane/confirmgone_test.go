package controlplane

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// lateCache does not know of any object of a kind yet.
type lateCache[T client.Object, L client.ObjectList] struct{ client.Client }

func (c lateCache[T, L]) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, late := obj.(T); late {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

func (c lateCache[T, L]) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	if _, late := list.(L); late {
		return meta.SetList(list, nil)
	}
	return nil
}

// TestNothingIsLeftThatTheCacheDoesNotKnowYet is a control plane that is deleted right after something was made for it.
func TestNothingIsLeftThatTheCacheDoesNotKnowYet(t *testing.T) {
	left := func(h *hub, list client.ObjectList) int {
		h.Expect(h.List(t.Context(), list)).To(Succeed())
		return meta.LenList(list)
	}
	for kind, tc := range map[string]struct {
		late func(client.Client) client.Client
		list client.ObjectList
	}{
		"ClusterDeployment": {func(c client.Client) client.Client {
			return lateCache[*hivev1.ClusterDeployment, *hivev1.ClusterDeploymentList]{c}
		}, &hivev1.ClusterDeploymentList{}},
		"AgentClusterInstall": {func(c client.Client) client.Client {
			return lateCache[*hiveext.AgentClusterInstall, *hiveext.AgentClusterInstallList]{c}
		}, &hiveext.AgentClusterInstallList{}},
		"ClusterImageSet": {func(c client.Client) client.Client {
			return lateCache[*hivev1.ClusterImageSet, *hivev1.ClusterImageSetList]{c}
		}, &hivev1.ClusterImageSetList{}},
		"Machine": {func(c client.Client) client.Client {
			return lateCache[*clusterv1.Machine, *clusterv1.MachineList]{c}
		}, &clusterv1.MachineList{}},
	} {
		t.Run(kind, func(t *testing.T) {
			h := newHub(t, world(nil)...).withTime()
			h.reconcile()
			h.Expect(left(h, tc.list)).NotTo(BeZero())
			h.r.Client = tc.late(h.r.Client)
			cp := h.controlPlane()
			h.Expect(h.Delete(t.Context(), cp)).To(Succeed())
			for range 10 {
				before := left(h, tc.list)
				again := h.reconcile().RequeueAfter
				if apierrors.IsNotFound(h.Get(t.Context(), client.ObjectKeyFromObject(cp), cp.DeepCopy())) {
					h.Expect(before).To(BeZero(), "it goes when nothing is left")
					return
				}
				if left(h, tc.list) < before {
					h.Expect(again).To(BeNumerically("<=", reconcile.CacheLag), "nobody tells when it is gone")
				}
			}
			t.Error("the control plane does not go")
		})
	}
}
