package autoscaling

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/sample"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

var own = ctrl.Request{NamespacedName: client.ObjectKey{Namespace: sample.Namespace, Name: "w"}}

// A hub on which no MachineDeployment requests its capacity does not pay for a cache of its hosts.
func TestHostsAreNotWatchedWithoutRequest(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	w := watches(t, h, nil)
	for _, object := range []client.Object{machineDeployment(), cluster(), definition(metal3.HardwareDataCRD)} {
		g.Eventually(func() ([]ctrl.Request, error) { return w.Created(object) }).WithTimeout(10*time.Second).
			Should(ContainElement(own), "%T", object)
	}
	g.Expect(w.Kinds()).To(ConsistOf("MachineDeployment", "Cluster", "CustomResourceDefinition"))
}

func TestHostsAreWatchedOnRequest(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	w := watches(t, h, func(ctx context.Context) error {
		_, err := h.r.Reconcile(ctx, own)
		return err
	})
	for _, object := range append(host("large", 64), template()) {
		g.Eventually(func() ([]ctrl.Request, error) { return w.Created(object) }).WithTimeout(10*time.Second).
			Should(ContainElement(own), "%T", object)
	}
	other := host("other", 8)[0]
	other.SetNamespace("elsewhere")
	g.Expect(w.Created(other)).To(BeEmpty(), "another namespace")
}

// watches starts the controller of a hub. before runs before the controller starts.
func watches(t *testing.T, h *hub, before func(context.Context) error) *kubetest.Watches {
	t.Helper()
	w, err := kubetest.NewWatches(t.Context(), h.Client, func(ctx context.Context, mgr manager.Manager, options controller.Options) error {
		if err := h.r.SetupWithManager(mgr, options); err != nil || before == nil {
			return err
		}
		return before(ctx)
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return w
}

// An index can be added once. After a failure, the steps that succeeded are not repeated.
func TestFailedWatchIsRepeated(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t, host("large", 64)...)
	notServed, calls := errors.New("no matches for kind"), []string{}
	step := func(name string) func(context.Context) error {
		failed := false
		return func(context.Context) error {
			calls = append(calls, name)
			if name == "second" && !failed {
				failed = true
				return notServed
			}
			return nil
		}
	}
	h.r.hostWatches = kube.NewSteps(step("first"), step("second"), step("third"))
	_, err := h.r.Reconcile(t.Context(), own)
	g.Expect(err).To(MatchError(notServed))
	g.Expect(h.event()).To(BeEmpty(), "the operator is just being installed")
	g.Expect(h.reconcile(t.Context(), g)).To(HaveLen(2))
	g.Expect(calls).To(Equal([]string{"first", "second", "second", "third"}))
}

// Most MachineDeployments request nothing, and their status changes often.
func TestOnlyChangesOfTheCapacityPass(t *testing.T) {
	g := NewWithT(t)
	requesting := machineDeployment()
	silent := machineDeployment()
	delete(silent.Annotations, controlplanev1.AutoscalingCapacityAnnotation)
	left := silent.DeepCopy()
	left.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "openshift-agent-control-plane"}}
	g.Expect(informer.CapacityChanges.Create(event.CreateEvent{Object: requesting})).To(BeTrue())
	g.Expect(informer.CapacityChanges.Create(event.CreateEvent{Object: silent})).To(BeFalse())
	g.Expect(informer.CapacityChanges.Create(event.CreateEvent{Object: left})).To(BeTrue(), "annotations are left to withdraw")
	g.Expect(informer.CapacityChanges.Delete(event.DeleteEvent{Object: requesting})).To(BeFalse())

	update := func(before, after *clusterv1.MachineDeployment) bool {
		return informer.CapacityChanges.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	scaled := requesting.DeepCopy()
	scaled.Status.ObservedGeneration = 2
	g.Expect(update(requesting, scaled)).To(BeFalse())
	g.Expect(update(requesting, silent)).To(BeTrue())
	other := requesting.DeepCopy()
	other.Spec.Template.Spec.InfrastructureRef.Name = "other"
	g.Expect(update(requesting, other)).To(BeTrue())
	filtered := requesting.DeepCopy()
	filtered.Labels = map[string]string{clusterv1.WatchLabel: "mine"}
	g.Expect(update(requesting, filtered)).To(BeTrue(), "the watch filter selects it")
	relabeled := requesting.DeepCopy()
	relabeled.Labels = map[string]string{"other": "x"}
	g.Expect(update(requesting, relabeled)).To(BeFalse())
	paused := silent.DeepCopy()
	paused.Annotations[clusterv1.PausedAnnotation] = ""
	g.Expect(update(silent, paused)).To(BeFalse())
}

// The Bare Metal Operator writes to hosts all the time.
func TestOnlyChangesOfHostsThatMatterPass(t *testing.T) {
	for situation, tc := range map[string]struct {
		change func(*metal3.Host)
		passes bool
	}{
		"powered on":    {func(h *metal3.Host) { h.Status.PoweredOn = true }, false},
		"provisioned":   {func(h *metal3.Host) { h.Status.Provisioning.State = "provisioned" }, false},
		"inspecting":    {func(h *metal3.Host) { h.Status.Provisioning.State = "inspecting" }, true},
		"another label": {func(h *metal3.Host) { h.Labels = map[string]string{"pool": "web"} }, true},
		"unhealthy":     {func(h *metal3.Host) { h.Annotations = map[string]string{"capm3.metal3.io/unhealthy": ""} }, true},
		"more memory":   {func(h *metal3.Host) { h.Status.HardwareDetails = &metal3.Hardware{RAMMebibytes: 1} }, true},
	} {
		before, ok := host("a", 8)[0].(*metal3.Host)
		NewWithT(t).Expect(ok).To(BeTrue())
		after := before.DeepCopy()
		tc.change(after)
		NewWithT(t).Expect(informer.HostChanges.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(tc.passes), situation)
	}
	g := NewWithT(t)
	before, ok := host("a", 8)[1].(*metal3.HardwareData)
	g.Expect(ok).To(BeTrue())
	after := before.DeepCopy()
	after.ResourceVersion = "2"
	g.Expect(informer.HardwareChanges.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(BeFalse())
	after.Spec.Hardware.CPU.Count = 4
	g.Expect(informer.HardwareChanges.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(BeTrue())
}
