package controlplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/machines"
)

// setHealth acts as a MachineHealthCheck. Without a remediation it leaves the Machine to an external
// controller, which does not exist.
func (h *hub) setHealth(i int, healthy metav1.ConditionStatus, remediation string) clusterv1.Machine {
	h.t.Helper()
	m := h.machines()[i]
	conditions.Set(&m, metav1.Condition{
		Type: clusterv1.MachineHealthCheckSucceededCondition, Status: healthy, Reason: "NodeConditionFailed", Message: "Node is away",
	})
	if remediation != "" {
		conditions.Set(&m, metav1.Condition{
			Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse, Reason: remediation, Message: "Waiting for remediation",
		})
	}
	h.Expect(h.Status().Update(h.t.Context(), &m)).To(Succeed())
	return m
}

// makeUnhealthy makes a MachineHealthCheck request the remediation of a Machine, whose member is down.
func (h *hub) makeUnhealthy(i int) clusterv1.Machine {
	h.t.Helper()
	h.etcds.Members[i].Problem = "does not answer"
	if h.etcds.Members[i].Leader {
		h.etcds.Members[i].Leader, h.etcds.Members[(i+1)%len(h.etcds.Members)].Leader = false, true
	}
	return h.setHealth(i, metav1.ConditionFalse, clusterv1.MachineOwnerRemediatedWaitingForRemediationReason)
}

// keepMachines gives the Machines the finalizer of Cluster API.
func (h *hub) keepMachines() {
	h.t.Helper()
	for _, m := range h.machines() {
		m.Finalizers = []string{clusterv1.MachineFinalizer}
		h.Expect(h.Update(h.t.Context(), &m)).To(Succeed())
	}
}

// reportText returns the condition OwnerRemediated of a Machine.
func (h *hub) reportText(name string) *metav1.Condition {
	h.t.Helper()
	m := &clusterv1.Machine{}
	h.get(name, m)
	return conditions.Get(m, clusterv1.MachineOwnerRemediatedCondition)
}

func TestUnhealthyMachineIsReplaced(t *testing.T) {
	h := newInstalledHub(t)
	recorder := record.NewFakeRecorder(100)
	h.recorder.EventRecorder = recorder
	h.keepMachines()
	h.reconcile()
	h.Expect(h.etcds.inspections).To(BeZero(), "all are healthy")
	dead := h.makeUnhealthy(0)
	h.reconcile()
	h.get(dead.Name, &dead)
	h.Expect(dead.DeletionTimestamp).NotTo(BeNil())
	h.Expect(h.reportText(dead.Name)).To(
		And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", controlplanev1.MachineRemediationMachineDeletingReason)),
	)
	h.Expect(recorder.Events).To(Receive(ContainSubstring("MachineRemediated Machine " + dead.Name + " is unhealthy (Node is away)")))
	var kept facts.Remediation
	value := h.controlPlane().Annotations[controlplanev1.RemediationInProgressAnnotation]
	h.Expect(json.Unmarshal([]byte(value), &kept)).To(Succeed())
	h.Expect(kept.Machine).To(Equal(dead.Name))
	h.Expect(kept.RetryCount).To(BeZero())

	h.reconcile()
	h.endDeferral()
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(controlplanev1.RemediationInProgressAnnotation, value))
	h.Expect(h.controlPlane().Status.LastRemediation.Machine).To(Equal(dead.Name))
	c := conditions.Get(h.controlPlane(), controlplanev1.RemediatingCondition)
	h.Expect(c).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", ContainSubstring(dead.Name+": Machine is deleting"))))
	h.etcds.inspections, h.writes = 0, nil
	h.reconcile()
	h.Expect(h.etcds.inspections).To(BeZero(), "the decision needed no inspection")
	h.Expect(h.writes).To(BeEmpty())

	conditions.Set(&dead, metav1.Condition{
		Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason,
	})
	h.Expect(h.Status().Update(t.Context(), &dead)).To(Succeed())
	h.reconcile()
	h.Expect(h.etcds.calls).To(Equal([]string{"remove n0 through n1"}))
	h.finishMachine(dead.Name)
	h.reconcile()
	h.reconcile()
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	at := slices.IndexFunc(
		h.machines(), func(m clusterv1.Machine) bool { return m.Annotations[controlplanev1.RemediationForAnnotation] != "" },
	)
	h.Expect(at).NotTo(Equal(-1), "the new Machine replaces it")
	h.Expect(h.machines()[at].Annotations[controlplanev1.RemediationForAnnotation]).To(Equal(value))
}

func TestRecordedRemediationIsContinuedUnchanged(t *testing.T) {
	h := newInstalledHub(t)
	h.keepMachines()
	dead := h.makeUnhealthy(0)
	cp := h.controlPlane()
	value := fmt.Sprintf(`{"machine":%q,"timestamp":%q,"retryCount":0}`, dead.Name, time.Now().Add(-time.Minute).UTC().Format(time.RFC3339))
	metav1.SetMetaDataAnnotation(&cp.ObjectMeta, controlplanev1.RemediationInProgressAnnotation, value)
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	h.reconcile()
	h.get(dead.Name, &dead)
	h.Expect(dead.DeletionTimestamp).NotTo(BeNil())
	h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(controlplanev1.RemediationInProgressAnnotation, value))
}

func TestRecordOfFinishedRemediationIsRemoved(t *testing.T) {
	h := newInstalledHub(t)
	cp := h.controlPlane()
	const value = `{"machine":"gone","timestamp":"2026-01-02T12:00:00Z","retryCount":2}`
	metav1.SetMetaDataAnnotation(&cp.ObjectMeta, controlplanev1.RemediationInProgressAnnotation, value)
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	m := h.machines()[1]
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, controlplanev1.RemediationForAnnotation, value)
	h.Expect(h.Update(t.Context(), &m)).To(Succeed())
	h.reconcile()
	h.endDeferral()
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.RemediationInProgressAnnotation))
	h.Expect(h.machines()[1].Annotations).To(HaveKeyWithValue(controlplanev1.RemediationForAnnotation, value), "the Machine keeps the record")
	last := h.controlPlane().Status.LastRemediation
	h.Expect(last.Machine).To(Equal("gone"))
	h.Expect(last.RetryCount).To(HaveValue(BeEquivalentTo(2)))
}

func TestTwoUnhealthyOfThreeAreNotReplaced(t *testing.T) {
	h := newInstalledHub(t)
	h.keepMachines()
	first, second := h.makeUnhealthy(0), h.makeUnhealthy(1)
	result := h.reconcile()
	h.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", etcdgate.InitialDelay)), "etcd cannot be watched")
	for _, m := range h.machines() {
		h.Expect(m.DeletionTimestamp).To(BeNil())
	}
	reported := []*metav1.Condition{h.reportText(first.Name), h.reportText(second.Name)}
	h.Expect(reported).To(
		ContainElement(
			And(
				HaveField("Reason", controlplanev1.MachineCannotBeRemediatedReason), HaveField("Message", ContainSubstring("etcd has lost its quorum")),
			),
		),
	)
	h.Expect(reported).To(
		ContainElement(
			And(HaveField("Reason", controlplanev1.MachineRemediationDeferredReason), HaveField("Message", ContainSubstring("is handled first"))),
		),
	)
	h.Expect(h.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.RemediationInProgressAnnotation))
	h.endDeferral()
	h.reconcile()
	h.Expect(conditions.GetReason(h.controlPlane(), controlplanev1.RemediatingCondition)).To(
		Equal(controlplanev1.MachineCannotBeRemediatedReason), "the alert matches this reason",
	)
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.RemediatingCondition)).To(
		And(ContainSubstring(first.Name), ContainSubstring(second.Name), ContainSubstring("quorum")),
	)
	h.Expect(conditions.IsFalse(h.controlPlane(), controlplanev1.ScalingDownCondition)).To(BeTrue(), "no Machine is being deleted")

	h.etcds.inspections, h.writes = 0, nil
	h.reconcile()
	h.Expect(h.etcds.inspections).To(BeZero(), "etcd was inspected a moment ago")
	h.Expect(h.writes).To(BeEmpty())
}

func TestUnhealthyMachineIsNotReplacedWhileEtcdIsUnknown(t *testing.T) {
	for situation, tc := range map[string]struct {
		err     error
		message string
		again   bool
	}{
		"the cluster is unreachable": {cluster.ErrNotConnected, "does not answer", false},
		"etcd cannot be read":        {errors.New("secret of a server"), "the log of the manager", true},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newInstalledHub(t)
			h.keepMachines()
			dead := h.makeUnhealthy(0)
			h.etcds.observing = tc.err
			result := h.reconcile()
			h.Expect(h.machines()[0].DeletionTimestamp).To(BeNil())
			h.Expect(h.reportText(dead.Name)).To(And(HaveField("Reason", controlplanev1.MachineRemediationDeferredReason),
				HaveField("Message", And(ContainSubstring(tc.message), Not(ContainSubstring("secret"))))))
			h.Expect(result.RequeueAfter > 0 && result.RequeueAfter <= etcdgate.InitialDelay).To(Equal(tc.again))
		})
	}
}

func TestEtcdIsNotReadForADecisionWithoutIt(t *testing.T) {
	h := newInstalledHub(t)
	h.keepMachines()
	dead := h.makeUnhealthy(0)
	h.workloads.facts.Upgrading = "4.20.1"
	h.reconcile()
	h.Expect(h.etcds.inspections).To(BeZero())
	h.Expect(h.reportText(dead.Name).Message).To(ContainSubstring("upgraded to 4.20.1"))
}

func TestRecentlyDeletedMachineIsNotReplacedTwice(t *testing.T) {
	h := newInstalledHub(t)
	h.r.writer.Recent = newHub(t).r.writer.Recent // without time
	h.keepMachines()
	dead := h.makeUnhealthy(0)
	h.r.writer.Recent.Record(machines.ReplacedKey(&dead), h.machines()[0].ResourceVersion)
	h.Expect(h.reconcile().RequeueAfter).To(BeNumerically(">", 0))
	h.Expect(h.etcds.inspections).To(BeZero())
	h.Expect(h.machines()[0].DeletionTimestamp).To(BeNil())
}

func TestHealthyMachineLosesTheRequestForRemediation(t *testing.T) {
	h := newInstalledHub(t)
	healthy := h.setHealth(0, metav1.ConditionTrue, clusterv1.MachineOwnerRemediatedWaitingForRemediationReason)
	h.reconcile()
	h.Expect(h.reportText(healthy.Name)).To(BeNil())
	h.get(healthy.Name, &healthy)
	h.Expect(conditions.Has(&healthy, clusterv1.MachineHealthCheckSucceededCondition)).To(BeTrue(), "foreign conditions stay")
	h.writes = nil
	h.reconcile()
	h.Expect(h.writes).To(BeEmpty())
}

// reboot sets the phase that CAPM3 reports for the reboots of a host.
func (h *hub) reboot(m clusterv1.Machine, phase string) {
	h.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": phase}}}
	u.SetGroupVersionKind(infraGV.WithKind("Metal3Remediation"))
	u.SetNamespace(lab)
	u.SetName(m.Name)
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: m.Name, UID: m.UID}})
	h.Expect(h.Create(h.t.Context(), u)).To(Succeed())
}

func TestHostThatWasRebootedInVainIsReplaced(t *testing.T) {
	for phase, replaced := range map[string]bool{"Running": false, "Waiting": false, "Failed": false, "Deleting machine": true} {
		t.Run(phase, func(t *testing.T) {
			h := newInstalledHub(t)
			h.Expect(h.Create(t.Context(), crd("metal3remediations", "Metal3Remediation"))).To(Succeed())
			var tracked []string
			h.r.trackReboots = func(of client.Object) error {
				tracked = append(tracked, of.GetObjectKind().GroupVersionKind().Kind)
				return nil
			}
			h.keepMachines()
			dead := h.makeUnhealthy(0)
			conditions.Delete(&dead, clusterv1.MachineOwnerRemediatedCondition)
			h.Expect(h.Status().Update(t.Context(), &dead)).To(Succeed())
			h.reboot(dead, phase)
			h.reconcile()
			h.Expect(tracked).To(ConsistOf("Metal3Remediation"))
			h.Expect(h.machines()[0].DeletionTimestamp != nil).To(Equal(replaced))
			if replaced {
				h.Expect(h.reportText(dead.Name).Reason).To(Equal(controlplanev1.MachineRemediationMachineDeletingReason))
				return
			}
			h.Expect(h.reportText(dead.Name)).To(BeNil())
			h.endDeferral()
			h.reconcile()
			c := conditions.Get(h.controlPlane(), controlplanev1.RemediatingCondition)
			h.Expect(c).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring(dead.Name))))
		})
	}
}

func TestRebootsAreNotReadWithoutMetal3Remediations(t *testing.T) {
	h := newInstalledHub(t)
	h.r.trackReboots = func(client.Object) error { return errors.New("there is no such kind") }
	h.setHealth(0, metav1.ConditionFalse, "")
	h.reconcile()
	h.Expect(h.machines()[0].DeletionTimestamp).To(BeNil())
}

func TestRebootReconcilesTheControlPlane(t *testing.T) {
	h := newInstalledHub(t)
	u := &unstructured.Unstructured{}
	u.SetNamespace(lab)
	u.SetName(h.machines()[0].Name)
	h.Expect(h.r.ofReboot(t.Context(), u)).To(ConsistOf(HaveField("Name", "c1")))
	u.SetName("another")
	h.Expect(h.r.ofReboot(t.Context(), u)).To(BeEmpty())
}
