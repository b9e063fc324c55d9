package controlplane

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdremoval"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// deleteWithoutHook deletes the first Machine as an earlier provider without hooks left it, and acts as
// Cluster API until the Machine waits for that reason.
func (h *hub) deleteWithoutHook(reason string) *clusterv1.Machine {
	h.t.Helper()
	m := &h.machines()[0]
	m.Annotations, m.Finalizers = nil, []string{clusterv1.MachineFinalizer}
	h.Expect(h.Update(h.t.Context(), m)).To(Succeed())
	h.Expect(h.Delete(h.t.Context(), m)).To(Succeed())
	h.setDeletingReason(m, reason)
	return m
}

// setDeletingReason sets the reason of the condition Deleting.
func (h *hub) setDeletingReason(m *clusterv1.Machine, reason string) {
	h.t.Helper()
	h.get(m.Name, m)
	if reason != "" {
		conditions.Set(m, metav1.Condition{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: reason})
		h.Expect(h.Status().Update(h.t.Context(), m)).To(Succeed())
	}
}

func TestDeletedMachineWithoutHookGetsHookWhilePossible(t *testing.T) {
	const draining = clusterv1.MachineDeletingDrainingNodeReason
	nothing := func(*hub, *clusterv1.Machine) {}
	for situation, tc := range map[string]struct {
		reason string
		before func(h *hub, m *clusterv1.Machine)
		held   bool
	}{
		"the deletion was requested a moment ago":   {"", nothing, true},
		"the deletion has begun":                    {clusterv1.MachineDeletingReason, nothing, true},
		"a pre-drain hook of another client exists": {clusterv1.MachineDeletingWaitingForPreDrainHookReason, nothing, true},
		"it is drained":                             {draining, nothing, true},
		"its volumes are detached":                  {clusterv1.MachineDeletingWaitingForVolumeDetachReason, nothing, true},
		"the cluster does not answer":               {clusterv1.MachineDeletingInternalErrorReason, nothing, true},
		"our hook was removed by hand":              {clusterv1.MachineDeletingWaitingForPreTerminateHookReason, nothing, false},
		"another pre-terminate hook exists": {clusterv1.MachineDeletingWaitingForPreTerminateHookReason, func(h *hub, m *clusterv1.Machine) {
			m.Annotations = map[string]string{clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/storage": ""}
			h.Expect(h.Update(h.t.Context(), m)).To(Succeed())
		}, true},
		"its host is being deleted":                    {clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason, nothing, false},
		"its OpenshiftAssistedConfig is being deleted": {clusterv1.MachineDeletingWaitingForBootstrapDeletionReason, nothing, false},
		"its Node is being deleted":                    {clusterv1.MachineDeletingDeletingNodeReason, nothing, false},
		"it was released, and is drained again": {draining, func(h *hub, _ *clusterv1.Machine) {
			h.annotate(controlplanev1.ReleasedHostsAnnotation, `[{"node":"n0","uid":"n0"}]`)
		}, false},
		"it was released under another name of its Node": {draining, func(h *hub, m *clusterv1.Machine) {
			h.annotate(
				controlplanev1.ReleasedHostsAnnotation,
				fmt.Sprintf(`[{"machine":%q,"providerID":"metal3://n0","node":"before","uid":"before"}]`, m.Name),
			)
		}, false},
		"another was released": {draining, func(h *hub, _ *clusterv1.Machine) {
			h.annotate(controlplanev1.ReleasedHostsAnnotation, `[{"node":"n9","uid":"n9"}]`)
		}, true},
		"the record of released hosts is invalid": {
			draining, func(h *hub, _ *clusterv1.Machine) { h.annotate(controlplanev1.ReleasedHostsAnnotation, "n0") }, false,
		},
		"no Node is known": {"", func(h *hub, m *clusterv1.Machine) {
			h.workloads.facts.Nodes, m.Status.NodeRef = nil, clusterv1.MachineNodeReference{}
			h.Expect(h.Status().Update(h.t.Context(), m)).To(Succeed())
		}, false},
		"its infra machine is being deleted": {clusterv1.MachineDeletingInternalErrorReason, func(h *hub, m *clusterv1.Machine) {
			infra, err := kube.InfraMachine(h.t.Context(), h.cached, m)
			h.Expect(err).NotTo(HaveOccurred())
			h.get(infra.GetName(), infra)
			infra.SetFinalizers([]string{"metal3machine.infrastructure.cluster.x-k8s.io"})
			h.Expect(h.Update(h.t.Context(), infra)).To(Succeed())
			h.Expect(h.Delete(h.t.Context(), infra)).To(Succeed())
		}, false},
		"the Cluster is being deleted": {draining, func(h *hub, _ *clusterv1.Machine) { h.deleteCluster() }, false},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newInstalledHub(t)
			m := h.deleteWithoutHook(tc.reason)
			tc.before(h, m)
			h.reconcile()
			if !tc.held {
				h.Expect(h.held()).NotTo(ContainElement(m.Name))
				return
			}
			h.Expect(h.held()).To(HaveLen(3))
			h.Expect(h.etcds.calls).NotTo(ContainElement(ContainSubstring("remove")))
			h.get(m.Name, m)
			version := m.ResourceVersion
			h.reconcile()
			h.get(m.Name, m)
			h.Expect(m.ResourceVersion).To(Equal(version), "once")
		})
	}
}

func TestMachineWithLateHookIsRemovedLikeOthers(t *testing.T) {
	h := newInstalledHub(t)
	recorder := record.NewFakeRecorder(100)
	h.recorder.EventRecorder = recorder
	m := h.deleteWithoutHook(clusterv1.MachineDeletingDrainingNodeReason)
	h.reconcile()
	h.Expect(recorder.Events).To(Receive(ContainSubstring("HostReleaseBlocked Machine " + m.Name)))
	h.setDeletingReason(m, clusterv1.MachineDeletingWaitingForPreTerminateHookReason)
	h.reconcile()
	h.Expect(h.etcds.calls).To(Equal([]string{"lead n1 instead of n0", "remove n0 through n1"}))
	h.Expect(h.held()).NotTo(ContainElement(m.Name))
	h.setDeletingReason(m, clusterv1.MachineDeletingDrainingNodeReason)
	h.reconcile()
	h.Expect(h.held()).NotTo(ContainElement(m.Name), "the hook is not added again")
}

func TestNoLateHookBeforeTheInstallationEnds(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.setState("installing", "", 50)
	h.reconcile()
	h.deleteWithoutHook(clusterv1.MachineDeletingDrainingNodeReason)
	h.reconcile()
	h.Expect(h.held()).To(BeEmpty())
}

// The cache may show a Machine as it was before we dropped its hook.
func TestNoLateHookWhileTheCacheLagsBehindADroppedHook(t *testing.T) {
	h := newInstalledHub(t)
	m := h.deleteWithoutHook(clusterv1.MachineDeletingDrainingNodeReason)
	now := time.Now()
	h.r.writer.Recent = reconcile.NewRecentWrites(&testClock{now: func() time.Time { return now }})
	h.r.writer.Recent.Record(etcdremoval.HookKey(m), m.ResourceVersion)
	h.reconcile()
	h.Expect(h.held()).NotTo(ContainElement(m.Name))

	now = now.Add(reconcile.CacheLag)
	//nolint:forcetypeassert // the fake client
	cached := kubetest.Cached(h.Client.(client.WithWatch), informer.Cached(), informer.TrimInfra)
	h.cached.Client = interceptor.NewClient(cached, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if obj.GetName() == m.Name {
				h.setDeletingReason(m, clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason)
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	_, err := h.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: lab, Name: "c1"}})
	h.Expect(err).To(MatchError(apierrors.IsConflict, "a conflict"), "the Machine has changed since")
	h.Expect(h.held()).NotTo(ContainElement(m.Name))
}
