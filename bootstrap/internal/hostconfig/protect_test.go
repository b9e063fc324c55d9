package hostconfig

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/protection"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
)

// protection returns the value of the annotation that blocks MachineHealthChecks of the Machine; empty
// without annotation.
func (w *world) protection() string {
	w.t.Helper()
	return read(w, "m", &clusterv1.Machine{}).Annotations[clusterv1.MachineSkipRemediationAnnotation]
}

// TestMachineIsProtectedUntilItsHostIsInstalled: an installation takes longer than a MachineHealthCheck waits for a Node.
func TestMachineIsProtectedUntilItsHostIsInstalled(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.Expect(w.protection()).To(Equal(protection.Value), "the image is being created")
	w.makeImage()
	w.reconcile()
	w.Expect(w.config().Status.DataSecretName).NotTo(BeEmpty(), "the data is handed out")
	w.Expect(w.protection()).To(Equal(protection.Value), "the data is handed out")
	w.create(bareMetalHost(), discovered("a", "m", bootMAC))
	w.setState(lab()["install"], "installing")
	w.reconcile()
	w.lasts(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterNotAcceptingHostsReason)
	w.Expect(w.protection()).To(Equal(protection.Value), "a host that waits unbound is protected")
	w.setState(lab()["install"], "adding-hosts")
	w.reconcile()
	w.registerWithCluster("a", "known")
	w.reconcile()
	w.enter("a", "installed")
	w.reconcile()
	w.reconcile()
	w.wants(bootstrapv1.HostInstalledCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
	w.Expect(w.protection()).To(Equal(protection.Value), "a MachineHealthCheck misses the Node until Cluster API knows it")
	w.knowNode()
	w.reconcile()
	w.Expect(w.protection()).To(BeEmpty(), "no longer protected")
	before := w.writes
	w.reconcile()
	w.Expect(w.writes).To(Equal(before), "no further write")
}

func (w *world) knowNode() {
	w.t.Helper()
	machine := read(w, "m", &clusterv1.Machine{})
	w.change(machine, func() { machine.Status.NodeRef.Name = "rack1-u7" })
}

func (w *world) annotate(value string) {
	w.t.Helper()
	machine := read(w, "m", &clusterv1.Machine{})
	w.change(machine, func() {
		machine.Annotations = map[string]string{clusterv1.MachineSkipRemediationAnnotation: value}
	})
}

// installing returns a world whose host is approved.
func installing(t *testing.T) *world {
	t.Helper()
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.registerWithCluster("a", "known")
	w.reconcile()
	return w
}

func TestProtectionEnds(t *testing.T) {
	for situation, tc := range map[string]struct {
		happen func(w *world)
		wanted string
	}{
		"the installation proceeds":        {func(w *world) { w.enter("a", "installing-in-progress") }, protection.Value},
		"the installation failed for good": {func(w *world) { w.enter("a", "error") }, ""},
		"the annotation was removed by hand while the host is installed": {func(w *world) {
			machine := read(w, "m", &clusterv1.Machine{})
			w.change(machine, func() { machine.Annotations = nil })
		}, protection.Value},
		"the Node exists before the installation ends": {
			func(w *world) { w.enter("a", "installing-in-progress"); w.knowNode() },
			protection.Value,
		},
		"installed, the annotation of a user stays": {func(w *world) {
			w.annotate("")
			w.annotate("mine")
			w.enter("a",
				"installed")
			w.knowNode()
		}, "mine"},
		"installed, the provider's annotation remains, and the manager restarted": {func(w *world) {
			w.enter("a", "installed")
			w.knowNode()
			w.reconcile()
			w.reconcile()
			w.annotate(protection.Value)
			w.restart()
		}, ""},
		"the Machine is being deleted": {func(w *world) {
			machine := read(w, "m", &clusterv1.Machine{})
			w.change(machine, func() { machine.Finalizers = []string{"machine.cluster.x-k8s.io"} })
			w.remove(machine)
			w.enter("a", "error")
		}, protection.Value},
		"paused": {func(w *world) {
			cluster := read(w, "c", &clusterv1.Cluster{})
			w.change(cluster, func() { cluster.Spec.Paused = ptr.To(true) })
			w.annotate("")
			machine := read(w, "m", &clusterv1.Machine{})
			w.change(machine, func() { machine.Annotations = nil })
		}, ""},
	} {
		t.Run(situation, func(t *testing.T) {
			w := installing(t)
			tc.happen(w)
			w.reconcile()
			w.reconcile()
			w.Expect(w.protection()).To(Equal(tc.wanted))
		})
	}
}

func TestAnnotationOfUserIsNotOverwritten(t *testing.T) {
	for _, value := range []string{"", "mine"} {
		objects := lab()
		objects["machine"].SetAnnotations(map[string]string{clusterv1.MachineSkipRemediationAnnotation: value})
		w := newWorld(t, values(objects)...)
		w.reconcile()
		w.makeImage()
		w.reconcile()
		w.reconcile()
		w.Expect(w.config().Status.DataSecretName).NotTo(BeEmpty(), "%q", value)
		w.Expect(w.protection()).To(Equal(value))
	}
}

// TestMovedMachineIsNotProtected: its host was installed long ago.
func TestMovedMachineIsNotProtected(t *testing.T) {
	objects := lab()
	machine, _ := objects["machine"].(*clusterv1.Machine)
	machine.Spec.Bootstrap.DataSecretName = ptr.To("m")
	machine.Spec.ProviderID = "metal3://lab/rack1-u7/m"
	w := newWorld(t, values(objects)...)
	for range 3 {
		w.reconcile()
		w.Expect(w.protection()).To(BeEmpty(), "not protected")
	}
}

// TestProtectionWithOutdatedCache: the cache does not contain the annotation yet.
func TestProtectionWithOutdatedCache(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.makeImage()
	stale := read(w, "m", &clusterv1.Machine{})
	w.reconcile()
	s := scope.New(&facts.Facts{Config: w.config(), Machine: stale})
	before := w.writes
	_, err := w.reconciler.protector.Protect(t.Context(), s)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.writes).To(Equal(before))
}

// TestProtectionSurvivesManager: a manager ends between the protection and the bootstrap data. The next
// manager must not withdraw the protection that it needs.
func TestProtectionSurvivesManager(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.annotate(protection.Value)
	before := w.writes
	w.reconcile()
	w.Expect(w.protection()).To(Equal(protection.Value))
	w.Expect(w.writes).To(Equal(before))
}
