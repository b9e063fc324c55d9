package controlplane

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// protections returns the Machines whose infrastructure machines are protected from deletion.
func (h *hub) protections() []string {
	h.t.Helper()
	var names []string
	for _, m := range h.machines() {
		infra, err := kube.InfraMachine(h.t.Context(), h.cached, &m)
		h.Expect(err).NotTo(HaveOccurred())
		if infra == nil {
			continue
		}
		if _, protected := infra.GetAnnotations()[controlplanev1.DeleteProtectionAnnotation]; protected {
			names = append(names, m.Name)
		}
	}
	return names
}

func (h *hub) machineNames() []string {
	var names []string
	for _, m := range h.machines() {
		names = append(names, m.Name)
	}
	return names
}

func TestInfraMachinesOfEtcdMembersAreProtectedFromDeletion(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.Expect(h.machines()).NotTo(BeEmpty())
	h.Expect(h.protections()).To(BeEmpty(), "etcd does not exist before the installation")

	h = newInstalledHub(t)
	h.Expect(h.protections()).To(ConsistOf(h.machineNames()))
}

// Cluster API core deletes the infrastructure machine as soon as the hook is removed. With the protection the
// deletion would be refused. Therefore this test checks the order of the writes.
func TestProtectionEndsBeforeTheHook(t *testing.T) {
	for situation, release := range map[string]func(h *hub){
		"one Machine is deleted, and its host leaves etcd": func(h *hub) { h.deleteMachine(1) },
		"the Cluster is deleted":                           func(h *hub) { h.deleteCluster() },
	} {
		t.Run(situation, func(t *testing.T) {
			h := newInstalledHub(t)
			released := 0
			h.cached.Client = interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
					m, is := o.(*clusterv1.Machine)
					if !is || !removal.HasHook(m) {
						return c.Patch(ctx, o, patch, options...)
					}
					err := c.Patch(ctx, o, patch, options...)
					after := &clusterv1.Machine{}
					h.get(m.Name, after)
					if !removal.HasHook(after) {
						released++
						h.Expect(h.protections()).NotTo(ContainElement(m.Name))
					}
					return err
				},
			})
			release(h)
			for range 4 {
				h.reconcile()
			}
			h.Expect(released).To(BeNumerically(">", 0))
		})
	}
}

func TestHookStaysIfTheProtectionCannotBeEnded(t *testing.T) {
	h := newInstalledHub(t)
	name := h.deleteMachine(1)
	refused := errors.New("refused")
	h.cached.Client = interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if _, is := o.(*unstructured.Unstructured); is {
				return refused
			}
			return c.Patch(ctx, o, patch, options...)
		},
	})
	_, err := h.r.Reconcile(t.Context(), h.request())
	h.Expect(err).To(MatchError(refused))
	m := &clusterv1.Machine{}
	h.get(name, m)
	h.Expect(removal.HasHook(m)).To(BeTrue())
}

func TestHookThatWasRemovedByHandEndsTheProtection(t *testing.T) {
	for situation, takenOut := range map[string]bool{
		"of a control-plane Machine": false, "of a Machine that was removed from the control plane": true,
	} {
		t.Run(situation, func(t *testing.T) {
			h := newInstalledHub(t)
			name := h.deleteMachine(1)
			m := &clusterv1.Machine{}
			h.get(name, m)
			delete(m.Annotations, controlplanev1.EtcdMemberHookAnnotation)
			if takenOut {
				m.Labels, m.OwnerReferences = map[string]string{clusterv1.ClusterNameLabel: m.Spec.ClusterName}, clusterOwner()
			}
			h.Expect(h.Update(t.Context(), m)).To(Succeed())
			h.reconcile()
			h.Expect(h.protections()).NotTo(ContainElement(name))
		})
	}
}

// After a restore only the labels of a Machine may identify its owner.
func TestNoMachineIsCreatedWhileMachinesHaveNoOwner(t *testing.T) {
	h := newHub(t, world(nil)...)
	restored := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: lab, Name: "restored",
		Labels: map[string]string{
			clusterv1.ClusterNameLabel: "cluster1", clusterv1.MachineControlPlaneLabel: "", clusterv1.MachineControlPlaneNameLabel: "former",
		},
	}}
	restored.Spec.ClusterName = "cluster1"
	h.Expect(h.Create(t.Context(), restored)).To(Succeed())
	h.reconcile()
	h.Expect(h.machines()).To(ConsistOf(HaveField("Name", "restored")))
	h.Expect(h.condition(controlplanev1.InstalledCondition)).To(And(
		HaveField("Reason", controlplanev1.MachinesWithoutOwnerReason),
		HaveField("Message", And(ContainSubstring("restored"), ContainSubstring("wipes its host"))),
	))

	h.get(restored.Name, restored)
	restored.OwnerReferences = clusterOwner()
	h.Expect(h.Update(t.Context(), restored)).To(Succeed())
	h.reconcile()
	h.Expect(len(h.machines())).To(BeNumerically(">", 1), "the Machine has an owner by now")
}
