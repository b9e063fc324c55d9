package hostconfig

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// freeHost returns a host without consumer, with a label.
func freeHost(name, zone string) *metal3.Host {
	host := bareMetalHost()
	host.Name, host.Spec.ConsumerRef, host.Labels = name, nil, map[string]string{"zone": zone}
	host.Status.Provisioning.State = "available"
	return host
}

// wanting returns a Metal3Machine that selects a host by label.
func wanting(name, zone string, made time.Time) *unstructured.Unstructured {
	machine := metal3Machine("live-iso")
	machine.SetName(name)
	machine.SetCreationTimestamp(metav1.NewTime(made))
	_ = unstructured.SetNestedStringMap(machine.Object, map[string]string{"zone": zone}, "spec", "hostSelector", "matchLabels")
	return machine
}

// TestHostsAreInspectedLater: Cluster and BareMetalHosts are created together, and the inspection takes longer than the image.
func TestHostsAreInspectedLater(t *testing.T) {
	objects := lab()
	objects["metal3"] = wanting("m", "a", time.Unix(2000, 0))
	host := freeHost("one", "a")
	host.Status.Provisioning.State = "inspecting"
	w := newWorld(t, append(values(objects), host)...)
	w.reconcile()
	w.makeImage()
	w.reconcile()
	w.lasts(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostReason)
	w.Expect(w.message(bootstrapv1.ReadyCondition)).To(HaveSuffix("fits: one (inspecting)"))
	w.Expect(w.events.Events).To(BeEmpty(), "this is normal")

	w.change(host, func() { host.Status.Provisioning.State, host.Status.ErrorMessage = "inspecting", "timeout" })
	w.reconcile()
	w.lasts(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.NoHostFitsReason)
	w.Expect(w.events.Events).To(Receive(HavePrefix("Warning NoHostFits")))
}

// TestHostsAreCheckedBeforeServerBoots: problems are reported while the image is still being created, and
// block nothing.
func TestHostsAreCheckedBeforeServerBoots(t *testing.T) {
	objects := lab()
	objects["metal3"] = wanting("m", "a", time.Unix(2000, 0))
	w := newWorld(t, append(values(objects), freeHost("one", "b"))...)
	w.reconcile()
	w.lasts(bootstrapv1.HostAvailableCondition, metav1.ConditionFalse, bootstrapv1.NoHostFitsReason)
	w.Expect(w.message(bootstrapv1.HostAvailableCondition)).To(ContainSubstring("one (labels do not match hostSelector zone=a)"))
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForDiscoveryImageReason)

	w.makeImage()
	w.reconcile()
	w.lasts(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionTrue, bootstrapv1.DataSecretAvailableReason)
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.NoHostFitsReason)
	w.Expect(w.message(bootstrapv1.ReadyCondition)).To(And(ContainSubstring("choose a BareMetalHost"), ContainSubstring("lab fits: one (")),
		"Machine and control plane mirror the message")

	w.create(freeHost("two", "a"))
	w.reconcile()
	w.lasts(bootstrapv1.HostAvailableCondition, metav1.ConditionTrue, bootstrapv1.HostsFitReason)
	w.Expect(w.message(bootstrapv1.HostAvailableCondition)).To(Equal("BareMetalHosts that fit: two"))
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostReason)
	w.Expect(w.message(bootstrapv1.ReadyCondition)).To(HaveSuffix("to choose a BareMetalHost"))
	before := w.writes
	w.reconcile()
	w.Expect(w.writes).To(Equal(before), "no write without a change")

	w.create(wanting("older", "a", time.Unix(1000, 0)))
	w.reconcile()
	w.lasts(bootstrapv1.HostAvailableCondition, metav1.ConditionFalse, bootstrapv1.TooFewHostsReason)
	w.Expect(w.message(bootstrapv1.HostAvailableCondition)).To(ContainSubstring("older Metal3Machines wait for hosts as well: older. "))
}

// TestMachinesWithHostNeedNoOther: CAPM3's annotation or the consumer of the host shows it, or the Machine is
// being deleted.
func TestMachinesWithHostNeedNoOther(t *testing.T) {
	annotated, named, going := wanting("annotated", "a", time.Unix(1000, 0)), wanting("named", "a", time.Unix(1000, 0)), wanting("going", "a",
		time.Unix(1000, 0))
	annotated.SetAnnotations(map[string]string{metal3.HostAnnotation: "lab/elsewhere"})
	going.SetFinalizers([]string{"x/y"})
	theirs := freeHost("theirs", "a")
	theirs.Spec.BootMACAddress = otherBootMAC
	theirs.Spec.ConsumerRef = &metal3.Consumer{Kind: "Metal3Machine", Namespace: namespace, Name: "named"}
	objects := lab()
	objects["metal3"] = wanting("m", "a", time.Unix(2000, 0))
	w := newWorld(t, append(values(objects), freeHost("one", "a"), theirs, annotated, named, going)...)
	w.remove(going)
	w.reconcile()
	w.lasts(bootstrapv1.HostAvailableCondition, metav1.ConditionTrue, bootstrapv1.HostsFitReason)
}

// TestProblemsOfChosenHostAreReported until the host is installed; errors also afterwards.
func TestProblemsOfChosenHostAreReported(t *testing.T) {
	w := booted(t)
	w.reconcile()
	w.lasts(bootstrapv1.HostAvailableCondition, metav1.ConditionTrue, bootstrapv1.HostChosenReason)
	host := read(w, "rack1-u7", bareMetalHost())
	w.change(host, func() { host.Status.ErrorType, host.Status.ErrorMessage = "provisioning error", "no such image" })
	w.reconcile()
	w.wants(bootstrapv1.HostAvailableCondition, metav1.ConditionFalse, bootstrapv1.HostFailedReason)
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.HostFailedReason)
	w.Expect(w.message(bootstrapv1.HostAvailableCondition)).To(Equal("BareMetalHost lab/rack1-u7: provisioning error: no such image"))
	w.Expect(w.message(bootstrapv1.ReadyCondition)).To(HaveSuffix("; BareMetalHost lab/rack1-u7: provisioning error: no such image"))

	machine := read(w, "m", &clusterv1.Machine{})
	w.change(machine, func() { machine.Status.NodeRef.Name = "rack1-u7" })
	w.clock = w.clock.Add(reconcile.DeferralPeriod)
	w.reconcile()
	w.wants(bootstrapv1.HostAvailableCondition, metav1.ConditionFalse, bootstrapv1.HostFailedReason)
	host = read(w, "rack1-u7", bareMetalHost())
	w.change(host, func() { host.Status.ErrorType, host.Status.ErrorMessage = "", "" })
	w.reconcile()
	w.clock = w.clock.Add(reconcile.DeferralPeriod)
	w.reconcile()
	w.Expect(w.message(bootstrapv1.HostAvailableCondition)).To(BeEmpty(), "after the installation Metal3 reports the host")
	host = read(w, "rack1-u7", bareMetalHost())
	w.change(host, func() { host.Status.ErrorType, host.Status.ErrorMessage = "provisioning error", "cleaning failed" })
	w.reconcile()
	w.Expect(w.message(bootstrapv1.HostAvailableCondition)).To(Equal("BareMetalHost lab/rack1-u7: provisioning error: cleaning failed"),
		"the deleted Machine waits for the host")
}

// TestHostChangesReachWaitingMachines: Machines that wait for any host are enqueued later, because many hosts
// change at once.
func TestHostChangesReachWaitingMachines(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	queue := &late{}
	host := freeHost("one", "a")
	host.Spec.BootMACAddress = otherBootMAC
	changes := w.reconciler.hostChanges()
	changes.Create(t.Context(), event.CreateEvent{Object: host}, queue)
	changes.Update(t.Context(), event.UpdateEvent{ObjectOld: host, ObjectNew: host}, queue)
	changes.Delete(t.Context(), event.DeleteEvent{Object: host}, queue)
	w.Expect(queue.later).To(Equal([]string{"m", "m", "m"}))
	w.Expect(queue.at).To(BeEmpty(), "no Machine has this host")

	elsewhere := freeHost("one", "a")
	elsewhere.Namespace = "tenant"
	changes.Create(t.Context(), event.CreateEvent{Object: elsewhere}, queue)
	w.Expect(queue.later).To(HaveLen(3), "CAPM3 assigns hosts of the Machine's own namespace")

	going := metal3Machine("live-iso")
	going.SetName("other")
	*queue = late{}
	w.reconciler.infraMachineChanges().Update(t.Context(), event.UpdateEvent{ObjectOld: going, ObjectNew: going}, queue)
	w.Expect(queue.later).To(BeEmpty())
	going.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	w.reconciler.infraMachineChanges().Update(t.Context(), event.UpdateEvent{ObjectOld: going, ObjectNew: going}, queue)
	w.Expect(queue.later).To(Equal([]string{"m"}), "the Machine does not need its host any more")
	own := metal3Machine("live-iso")
	w.reconciler.infraMachineChanges().Create(t.Context(), event.CreateEvent{Object: own}, queue)
	w.Expect(queue.at).To(Equal([]string{"m"}), "the Machine's own host is enqueued at once")

	w.create(bareMetalHost())
	w.reconcile()
	*queue = late{}
	changes.Create(t.Context(), event.CreateEvent{Object: host}, queue)
	w.Expect(queue.later).To(BeEmpty(), "the Machine has a host")
	changes.Create(t.Context(), event.CreateEvent{Object: bareMetalHost()}, queue)
	w.Expect(queue.at).To(Equal([]string{"m"}), "the Machine's own host")
}

// late is a queue that records immediate and delayed additions.
type late struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]

	at, later []string
}

func (q *late) Add(request ctrl.Request) { q.at = append(q.at, request.Name) }

func (q *late) AddAfter(request ctrl.Request, after time.Duration) {
	if after == hostChangesDelay {
		q.later = append(q.later, request.Name)
	}
}
