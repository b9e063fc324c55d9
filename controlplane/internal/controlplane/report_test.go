package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/machines"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

func TestMessagesAreWrittenWhenTheyLast(t *testing.T) {
	h := newHub(t, world(nil)...)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.r.writer.Recent = reconcile.NewRecentWrites(h.clock)
	at := func(later time.Duration, state string, percentage int64) string {
		now = now.Add(later)
		h.setState(state, hiveext.ClusterInstallationInProgressReason, percentage)
		requeue := h.reconcile().RequeueAfter
		progress := h.controlPlane().Status.Installation.Progress
		if !strings.HasSuffix(progress, fmt.Sprintf(" %d%%", percentage)) {
			h.Expect(requeue).To(And(BeNumerically(">", 0), BeNumerically("<=", reconcile.DeferralPeriod)), "the change is not written yet")
		}
		return progress
	}
	h.reconcile()
	h.Expect(at(2*reconcile.CacheLag, "installing", 10)).To(Equal("Installing 10%"), "a new phase, at once")
	h.Expect(at(2*reconcile.CacheLag, "installing", 20)).To(Equal("Installing 10%"), "the change may be transient")
	h.Expect(at(2*reconcile.CacheLag, "installing", 10)).To(Equal("Installing 10%"), "the change was transient")

	h.Expect(at(reconcile.DeferralPeriod, "installing", 20)).To(Equal("Installing 10%"), "the period starts again")
	h.Expect(at(reconcile.DeferralPeriod/2, "installing", 30)).To(Equal("Installing 10%"))
	h.Expect(at(reconcile.DeferralPeriod/2, "installing", 40)).To(
		Equal("Installing 40%"), "a value that changes all the time is written with its last state",
	)

	h.Expect(at(2*reconcile.CacheLag, "installing", 50)).To(Equal("Installing 40%"))
	h.Expect(at(2*reconcile.CacheLag, "finalizing", 80)).To(Equal("Finalizing 80%"), "messages are included in an immediate write")
}

func TestQuiet(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	c := &testClock{now: time.Now}
	r := New(Options{Clock: c})
	c.now = func() time.Time { return now }
	before := controlPlane(nil)
	after := before.DeepCopy()
	before.Status.Conditions = []metav1.Condition{
		{Type: "A", Status: metav1.ConditionFalse, Reason: controlplanev1.WaitingForHostsReason, Message: "for one"},
	}
	after.Status.Conditions = []metav1.Condition{
		{Type: "A", Status: metav1.ConditionFalse, Reason: controlplanev1.WaitingForHostsReason, Message: "for two"},
	}
	g.Expect(r.reportDelay(before, after)).To(Equal(reconcile.DeferralPeriod))
	now = now.Add(reconcile.DeferralPeriod / 4)
	g.Expect(r.reportDelay(before, after)).To(Equal(reconcile.DeferralPeriod*3/4), "the next reconcile is at the end of the deferral")
	now = now.Add(reconcile.DeferralPeriod)
	g.Expect(r.reportDelay(before, after)).To(BeZero())
}

func TestPauseIsReportedAtOnce(t *testing.T) {
	h := newHub(t, altered(func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) })(world(nil))...)
	h.reconcile()
	cp := h.controlPlane()
	cp.Generation++
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	h.reconcile()
	h.Expect(conditions.Get(h.controlPlane(), clusterv1.PausedCondition).ObservedGeneration).To(
		Equal(h.controlPlane().Generation), "a later write would violate the pause",
	)
}

func TestVersionIsReportedBeforeMachinesExist(t *testing.T) {
	given := world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Spec.Version = "1.32.6" })
	h := newHub(t, altered(func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = nil })(given)...)
	h.reconcile()
	h.Expect(h.machines()).To(BeEmpty())
	h.Expect(h.controlPlane().Status.Version).To(Equal("v1.32.6"), "without it MachineSets create no workers and retry after 15 s")
	h.Expect(h.controlPlane().Status.Versions).To(Equal([]controlplanev1.StatusVersion{{Version: "v1.32.6", Replicas: ptr.To[int32](0)}}))

	h = newHub(t, world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Spec.Version = "newest" })...)
	h.reconcile()
	h.Expect(h.controlPlane().Status.Version).To(BeEmpty(), "no version")
}

func TestOnlyWaitingInfraMachinesAreTouched(t *testing.T) {
	h := newHub(t, world(nil)...)
	h.reconcile()
	all := h.machines()
	infra := func(i int) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(infraGV.WithKind(metal3.MachineKind))
		h.get(all[i].Name, u)
		return u
	}
	h.chooseHosts()
	linked, hostless := infra(1), infra(2)
	h.Expect(unstructured.SetNestedField(linked.Object, "metal3://x", "spec", "providerID")).To(Succeed())
	h.Expect(h.Update(t.Context(), linked)).To(Succeed())
	hostless.SetAnnotations(nil)
	h.Expect(h.Update(t.Context(), hostless)).To(Succeed())

	touched := func() (touched []bool) {
		for i := range all {
			_, annotated := infra(i).GetAnnotations()[machines.KubeconfigPublishedAnnotation]
			touched = append(touched, annotated)
		}
		return touched
	}
	h.giveKubeconfig("first")
	h.r.writer.Recent = reconcile.NewRecentWrites(clock.RealClock{})
	h.reconcile()
	h.Expect(touched()).To(Equal([]bool{false, false, false}), "no Node exists long after the kubeconfig")
	h.setState("adding-hosts", hiveext.ClusterInstalledReason, 100)
	h.reconcile()
	h.Expect(touched()).To(Equal([]bool{true, false, false}), "the cluster is installed, even if the manager is not connected to it")
}

// Each touch is a request of this provider and a reconcile of CAPM3.
func TestInfraMachineIsTouchedOnceForItsNode(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.chooseHosts()
	m := h.machines()[0]
	h.createAgent(&m, "a0")
	touches := func() int {
		h.writing.Lock()
		defer h.writing.Unlock()
		return len(slices.DeleteFunc(slices.Clone(h.writes), func(w string) bool { return w != "patch "+m.Name }))
	}
	before := touches()
	h.giveKubeconfig("first")
	h.setState("installing", hiveext.ClusterInstallationInProgressReason, 45)
	h.reconcile()
	h.workloads.facts = workload.State{
		Connected: true, LastSuccess: time.Now(), Nodes: []workload.Node{{Name: "n0", UID: "n0", HostUID: "host"}},
	}
	h.reconcile()
	infra := &unstructured.Unstructured{}
	infra.SetGroupVersionKind(infraGV.WithKind(metal3.MachineKind))
	h.get(m.Name, infra)
	h.Expect(infra.GetAnnotations()).To(HaveKey(machines.NodeSeenAnnotation))
	h.reconcile()
	h.Expect(touches() - before).To(Equal(1))
}

// chooseHosts acts as CAPM3: every Metal3Machine gets a host.
func (h *hub) chooseHosts() {
	h.t.Helper()
	for _, m := range h.machines() {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(infraGV.WithKind(metal3.MachineKind))
		h.get(m.Name, u)
		annotations := u.GetAnnotations()
		annotations[metal3.HostAnnotation] = lab + "/" + m.Name
		u.SetAnnotations(annotations)
		h.Expect(h.Update(h.t.Context(), u)).To(Succeed())
	}
}

// Another process reports another state of the installation each time.
func TestForeignStatusIsCorrectedAtLimitedRate(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	corrected := 0
	for range 100 {
		now = now.Add(10 * time.Millisecond)
		cp := h.controlPlane()
		conditions.Set(cp, metav1.Condition{
			Type: controlplanev1.InstalledCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.PreparationFailedReason,
		})
		h.Expect(h.Status().Update(t.Context(), cp)).To(Succeed())
		again := h.reconcile().RequeueAfter
		if conditions.GetReason(h.controlPlane(), controlplanev1.InstalledCondition) != controlplanev1.PreparationFailedReason {
			corrected++
		} else {
			h.Expect(again).To(BeNumerically("<=", 2*time.Second), "the status is corrected at last")
		}
	}
	h.Expect(corrected).To(And(BeNumerically(">", 10), BeNumerically("<", 30)))
}

// unreportable is a client that cannot write a status.
type unreportable struct{ client.Client }

// unwritable is the status of an unreportable.
type unwritable struct{ client.SubResourceWriter }

func (u unreportable) Status() client.SubResourceWriter { return unwritable{u.Client.Status()} }

func (unwritable) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return errors.New("no answer")
}

// The next reconcile does not hold the host again.
func TestEventOfActionSurvivesFailedReport(t *testing.T) {
	h := newInstalledHub(t)
	recorder := record.NewFakeRecorder(100)
	h.recorder.EventRecorder = recorder
	h.cached.Client = unreportable{h.cached.Client}
	m := h.deleteWithoutHook(clusterv1.MachineDeletingDrainingNodeReason)
	h.workloads.facts.Unhealthy = []string{"etcd is degraded"} // an urgent report
	_, err := h.r.Reconcile(t.Context(), h.request())
	h.Expect(err).To(MatchError(ContainSubstring("no answer")))
	h.Expect(recorder.Events).To(Receive(ContainSubstring("HostReleaseBlocked Machine " + m.Name)))
}

// TestPanicIsReportedAsFailure: the phases after a panic have no result.
func TestPanicIsReportedAsFailure(t *testing.T) {
	h := newHub(t, world(nil)...)
	h.cached.Client = interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // the fake one
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			panic("a defect")
		},
	})
	h.Expect(func() { _, _ = h.r.Reconcile(t.Context(), h.request()) }).To(PanicWith("a defect"))
	h.Expect(conditions.GetReason(h.controlPlane(), controlplanev1.MachinesCreatedCondition)).To(Equal(clusterv1.InternalErrorReason))
}

func TestProblemHasOneEventWhenItBeginsAndOneWhenItEnds(t *testing.T) {
	h := newHub(t, without[*corev1.Secret](world(nil))...).withTime()
	recorder := record.NewFakeRecorder(100)
	h.recorder.EventRecorder = recorder
	for range 3 {
		h.reconcile()
		h.endDeferral()
	}
	h.Expect(h.controlPlane().Status.ProblemReason).To(Equal(controlplanev1.PullSecretMissingReason))
	h.Expect(recorder.Events).To(Receive(HavePrefix("Warning PullSecretMissing Secret pull does not exist")))
	h.Expect(recorder.Events).To(BeEmpty(), "nothing changed")

	for _, obj := range world(nil) {
		if secret, is := obj.(*corev1.Secret); is {
			h.Expect(h.Create(t.Context(), secret)).To(Succeed())
		}
	}
	for range 2 {
		h.reconcile()
		h.endDeferral()
	}
	h.Expect(h.controlPlane().Status.ProblemReason).To(BeEmpty())
	close(recorder.Events)
	var ended []string
	for event := range recorder.Events {
		if strings.Contains(event, "PullSecretMissing") {
			ended = append(ended, event)
		}
	}
	h.Expect(ended).To(ConsistOf("Normal ProblemEnded the condition Installed no longer reports PullSecretMissing"))
}

// TestNewControlPlaneHasNoEvents: the Secret may be the next object of the manifest.
func TestNewControlPlaneHasNoEvents(t *testing.T) {
	created := time.Now().Add(time.Hour)
	h := newHub(t, without[*corev1.Secret](world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.CreationTimestamp = metav1.NewTime(created)
	}))...).withTime()
	recorder := record.NewFakeRecorder(100)
	h.recorder.EventRecorder = recorder
	step := func() {
		h.reconcile()
		h.endDeferral()
		h.reconcile()
	}
	step()
	h.Expect(conditions.GetReason(h.controlPlane(), controlplanev1.InstalledCondition)).To(Equal(controlplanev1.PullSecretMissingReason))
	h.Expect(recorder.Events).To(BeEmpty())

	h.clock.now = func() time.Time { return created.Add(time.Minute) }
	step()
	h.Expect(recorder.Events).To(Receive(HavePrefix("Warning PullSecretMissing")))
}
