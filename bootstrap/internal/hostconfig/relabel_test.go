package hostconfig

import (
	"testing"

	. "github.com/onsi/gomega"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// strip takes all labels off the InfraEnv, as somebody else.
func (w *world) strip() {
	w.t.Helper()
	infraEnv := read(w, "m", &assisted.InfraEnv{})
	w.Expect(w.Patch(w.t.Context(), infraEnv, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`)))).To(Succeed())
	w.Expect(read(w, "m", &assisted.InfraEnv{}).Labels).To(BeEmpty())
}

// TestLabelsOfAnInfraEnvComeBack: by them it is found when the Machine goes, also when its host is installed and
// nothing else is stated any more.
func TestLabelsOfAnInfraEnvComeBack(t *testing.T) {
	for situation, at := range map[string]func(*testing.T) *world{"before a host has booted": func(t *testing.T) *world { return booted(t) }, "of an installed host": joined} {
		t.Run(situation, func(t *testing.T) {
			w := at(t)
			wanted := read(w, "m", &assisted.InfraEnv{}).Labels
			w.Expect(wanted).To(HaveKey(bootstrapv1.ConfigNameLabel))
			w.strip()
			w.Expect(w.reconciler.ofInfraEnv(t.Context(), cachedInfraEnv(w))).To(HaveLen(1), "it is noticed")
			w.reconcile()
			w.Expect(read(w, "m", &assisted.InfraEnv{}).Labels).To(Equal(wanted))
			before := w.writes
			w.reconcile()
			w.Expect(w.writes).To(Equal(before), "once")
		})
	}
}

func cachedInfraEnv(w *world) client.Object {
	w.t.Helper()
	infraEnv := &assisted.InfraEnv{}
	w.Expect(w.cache.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: "m"}, infraEnv)).To(Succeed())
	return infraEnv
}

// TestDeletionFindsAnInfraEnvWithoutLabels: it is not left behind, nor is its Agent.
func TestDeletionFindsAnInfraEnvWithoutLabels(t *testing.T) {
	w := joined(t)
	w.strip()
	machine := read(w, "m", &clusterv1.Machine{})
	w.change(machine, func() { machine.Finalizers = []string{clusterv1.MachineFinalizer} })
	w.remove(machine)
	w.remove(w.config())
	w.reconcile()
	w.Expect(w.agent("a").DeletionTimestamp).NotTo(BeNil())
	w.letGo("a", &aiv1beta1.Agent{})
	w.reconcile()
	w.Expect(read(w, "m", &assisted.InfraEnv{}).DeletionTimestamp).NotTo(BeNil())
}

// TestDeletionWithoutAMachineFindsAnInfraEnvWithoutLabels: somebody took the finalizers off the Machine, and it is gone.
func TestDeletionWithoutAMachineFindsAnInfraEnvWithoutLabels(t *testing.T) {
	w := joined(t)
	w.strip()
	w.remove(read(w, "m", &clusterv1.Machine{}))
	w.remove(w.config())
	w.reconcile()
	w.Expect(w.agent("a").DeletionTimestamp).NotTo(BeNil())
	w.letGo("a", &aiv1beta1.Agent{})
	w.reconcile()
	w.Expect(read(w, "m", &assisted.InfraEnv{}).DeletionTimestamp).NotTo(BeNil())
	w.Expect(w.config().Finalizers).NotTo(BeEmpty(), "it waits for it")
}

// TestTheInfraEnvOfAnotherMachineIsNotDeleted: a config that has lost its Machine has the name of another one.
func TestTheInfraEnvOfAnotherMachineIsNotDeleted(t *testing.T) {
	w := joined(t)
	w.strip()
	machine := read(w, "m", &clusterv1.Machine{})
	w.change(machine, func() { machine.Spec.Bootstrap.ConfigRef.Name = "another" })
	w.remove(w.config())
	w.reconcile()
	w.Expect(read(w, "m", &assisted.InfraEnv{}).DeletionTimestamp).To(BeNil())
	w.Expect(w.agent("a").DeletionTimestamp).To(BeNil(), "nor its Agent")
}

// TestAnInfraEnvOfSomebodyElseGetsNoLabels: it is told of, and left alone.
func TestAnInfraEnvOfSomebodyElseGetsNoLabels(t *testing.T) {
	theirs := &assisted.InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}}
	w := newWorld(t, append(values(lab()), theirs)...)
	w.reconcile()
	w.reconcile()
	w.wants(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.InfraEnvNotOursReason)
	w.Expect(read(w, "m", &assisted.InfraEnv{}).Labels).To(BeEmpty())
	w.Expect(w.reconciler.ofInfraEnv(t.Context(), theirs)).To(BeEmpty())
}
