package main

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// addWaitingMachine adds Machine lab/m1, which waits for a host.
func (w *world) addWaitingMachine(t *testing.T) {
	t.Helper()
	infra := &unstructured.Unstructured{}
	infra.SetGroupVersionKind(clusterv1.GroupVersionInfrastructure.WithKind(metal3.MachineKind))
	infra.SetNamespace("lab")
	infra.SetName("m1")
	w.Expect(w.Create(t.Context(), infra)).To(Succeed())
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: "m1", Labels: map[string]string{clusterv1.ClusterNameLabel: "ha"},
	}}
	machine.Spec.InfrastructureRef.Kind, machine.Spec.InfrastructureRef.Name = metal3.MachineKind, "m1"
	w.Expect(w.Create(t.Context(), machine)).To(Succeed())
}

func TestExitCodeOfHosts(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.Expect(w.run(t.Context(), "hosts")).To(Equal(exitDone))
	w.Expect(w.out.String()).To(Equal("No Machine in namespace lab waits for a BareMetalHost.\n"))

	w.addWaitingMachine(t)
	w.Expect(w.run(t.Context(), "hosts", "ha")).To(Equal(exitAttention))
	w.Expect(w.out.String()).To(Equal("Machine lab/m1: 0 of 0 BareMetalHosts fit\n"))

	host := &metal3.Host{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "rack0"}}
	host.Status.Provisioning.State = "available"
	w.Expect(w.Create(t.Context(), host)).To(Succeed())
	w.Expect(w.run(t.Context(), "hosts", "ha")).To(Equal(exitDone))
	w.Expect(w.out.String()).To(Equal("Machine lab/m1: 1 of 1 BareMetalHosts fit: rack0\n"))

	w.Expect(w.run(t.Context(), "hosts", "-o", "json")).To(Equal(exitDone))
	list := struct{ Items []struct{ Fitting []string } }{}
	w.Expect(json.Unmarshal(w.out.Bytes(), &list)).To(Succeed())
	w.Expect(list.Items).To(HaveLen(1))
	w.Expect(list.Items[0].Fitting).To(Equal([]string{"rack0"}))
	w.Expect(w.run(t.Context(), "hosts", "none")).To(Equal(exitError))
}

func TestHostsWithHiddenRequirements(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*bootstrapv1.OpenshiftAssistedConfigList); is {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "openshiftassistedconfigs"}, "", errors.New("no"))
			}
			return api.List(ctx, list, options...)
		},
	})
	w.Expect(w.run(t.Context(), "hosts")).To(Equal(exitError), "a requirement may exclude the hosts that seem to fit")
	w.Expect(w.out.String()).To(ContainSubstring("OpenshiftAssistedConfigs are not readable (no permission)"))
}
