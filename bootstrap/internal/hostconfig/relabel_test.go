package hostconfig

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// strip removes all labels of the InfraEnv, as another client.
func (w *world) strip() {
	w.t.Helper()
	infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
	w.Expect(w.Patch(w.t.Context(), infraEnv, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`)))).To(Succeed())
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).Labels).To(BeEmpty())
}

// TestLabelsOfInfraEnvAreRestored: the deletion of the Machine finds the InfraEnv by its labels. They are
// also restored for an installed host, for which the provider applies nothing else any more.
func TestLabelsOfInfraEnvAreRestored(t *testing.T) {
	for situation, at := range map[string]func(*testing.T) *world{
		"before a host has booted": func(t *testing.T) *world { return booted(t) },
		"of an installed host":     joined,
	} {
		t.Run(situation, func(t *testing.T) {
			w := at(t)
			wanted := read(w, "m", &aiv1beta1.InfraEnv{}).Labels
			w.Expect(wanted).To(HaveKey(bootstrapv1.ConfigNameLabel))
			w.strip()
			w.Expect(w.reconciler.ofInfraEnv(t.Context(), cachedInfraEnv(w))).To(HaveLen(1), "the change is reconciled")
			w.reconcile()
			w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).Labels).To(Equal(wanted))
			before := w.writes
			w.reconcile()
			w.Expect(w.writes).To(Equal(before), "once")
		})
	}
}

func cachedInfraEnv(w *world) client.Object {
	w.t.Helper()
	infraEnv := &aiv1beta1.InfraEnv{}
	w.Expect(w.cache.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: "m"}, infraEnv)).To(Succeed())
	return infraEnv
}

// TestDeletionFindsInfraEnvWithoutLabels: neither the InfraEnv nor its Agent is left behind.
func TestDeletionFindsInfraEnvWithoutLabels(t *testing.T) {
	w := joined(t)
	w.strip()
	machine := read(w, "m", &clusterv1.Machine{})
	w.change(machine, func() { machine.Finalizers = []string{clusterv1.MachineFinalizer} })
	w.remove(machine)
	w.remove(w.config())
	w.reconcile()
	w.Expect(w.agent("a").DeletionTimestamp).NotTo(BeNil())
	w.removeFinalizers("a", &aiv1beta1.Agent{})
	w.reconcile()
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp).NotTo(BeNil())
}

// TestDeletionWithoutMachineFindsInfraEnvWithoutLabels: another client removed the finalizers of the Machine,
// and the Machine is deleted.
func TestDeletionWithoutMachineFindsInfraEnvWithoutLabels(t *testing.T) {
	w := joined(t)
	w.strip()
	w.remove(read(w, "m", &clusterv1.Machine{}))
	w.remove(w.config())
	w.reconcile()
	w.Expect(w.agent("a").DeletionTimestamp).NotTo(BeNil())
	w.removeFinalizers("a", &aiv1beta1.Agent{})
	w.reconcile()
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp).NotTo(BeNil())
	w.Expect(w.config().Finalizers).NotTo(BeEmpty(), "the config waits for the InfraEnv")
}

// TestInfraEnvOfAnotherMachineIsNotDeleted: a config without Machine has the name of another Machine.
func TestInfraEnvOfAnotherMachineIsNotDeleted(t *testing.T) {
	w := joined(t)
	w.strip()
	machine := read(w, "m", &clusterv1.Machine{})
	w.change(machine, func() { machine.Spec.Bootstrap.ConfigRef.Name = "another" })
	w.remove(w.config())
	w.reconcile()
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp).To(BeNil())
	w.Expect(w.agent("a").DeletionTimestamp).To(BeNil(), "nor its Agent")
}

// TestForeignInfraEnvGetsNoLabels: a condition reports the InfraEnv, which stays unchanged.
func TestForeignInfraEnvGetsNoLabels(t *testing.T) {
	theirs := &aiv1beta1.InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}}
	w := newWorld(t, append(values(lab()), theirs)...)
	w.reconcile()
	w.reconcile()
	w.wants(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.InfraEnvNotOursReason)
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).Labels).To(BeEmpty())
	w.Expect(w.reconciler.ofInfraEnv(t.Context(), theirs)).To(BeEmpty())
}
