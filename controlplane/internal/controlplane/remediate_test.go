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

// check does as a MachineHealthCheck: without a remediation it leaves the Machine to somebody else, who does not exist.
func (h *hub) check(i int, healthy metav1.ConditionStatus, remediation string) clusterv1.Machine {
	h.t.Helper()
	m := h.machines()[i]
	conditions.Set(&m, metav1.Condition{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: healthy, Reason: "NodeConditionFailed", Message: "Node is away"})
	if remediation != "" {
		conditions.Set(&m, metav1.Condition{Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse, Reason: remediation, Message: "Waiting for remediation"})
	}
	h.Expect(h.Status().Update(h.t.Context(), &m)).To(Succeed())
	return m
}

// sicken makes a MachineHealthCheck ask for the remediation of a Machine, whose member is down.
func (h *hub) sicken(i int) clusterv1.Machine {
	h.t.Helper()
	h.etcds.Members[i].Problem = "does not answer"
	if h.etcds.Members[i].Leader {
		h.etcds.Members[i].Leader, h.etcds.Members[(i+1)%len(h.etcds.Members)].Leader = false, true
	}
	return h.check(i, metav1.ConditionFalse, clusterv1.MachineOwnerRemediatedWaitingForRemediationReason)
}

// keepMachines gives the Machines the finalizer of Cluster API.
func (h *hub) keepMachines() {
	h.t.Helper()
	for _, m := range h.machines() {
		m.Finalizers = []string{clusterv1.MachineFinalizer}
		h.Expect(h.Update(h.t.Context(), &m)).To(Succeed())
	}
}

// reportText is what the condition OwnerRemediated of a Machine says.
func (h *hub) reportText(name string) *metav1.Condition {
	h.t.Helper()
	m := &clusterv1.Machine{}
	h.get(name, m)
	return conditions.Get(m, clusterv1.MachineOwnerRemediatedCondition)
}

func TestAnUnhealthyMachineIsReplaced(t *testing.T) {
	h := newInstalledHub(t)
	recorder := record.NewFakeRecorder(100)
	h.recorder.EventRecorder = recorder
	h.keepMachines()
	h.reconcile()
	h.Expect(h.etcds.inspections).To(BeZero(), "all are healthy")
	dead := h.sicken(0)
	h.reconcile()
	h.get(dead.Name, &dead)
	h.Expect(dead.DeletionTimestamp).NotTo(BeNil())
	h.Expect(h.reportText(dead.Name)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", controlplanev1.MachineRemediationMachineDeletingReason)))
	h.Expect(recorder.Events).To(Receive(ContainSubstring("MachineRemediated Machine " + dead.Name + " is unhealthy (Node is away)")))
	var kept facts.Remediation
	value := h.controlPlane().Annotations[controlplanev1.RemediationInProgressAnnotation]
	h.Expect(json.Unmarshal([]byte(value), &kept)).To(Succeed())
	h.Expect(kept.Machine).To(Equal(dead.Name))
	h.Expect(kept.RetryCount).To(BeZero())

	h.reconcile()
	h.elapse()
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(controlplanev1.RemediationInProgressAnnotation, value))
	h.Expect(h.controlPlane().Status.LastRemediation.Machine).To(Equal(dead.Name))
	c := conditions.Get(h.controlPlane(), controlplanev1.RemediatingCondition)
	h.Expect(c).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", ContainSubstring(dead.Name+": Machine is deleting"))))
	h.etcds.inspections, h.writes = 0, nil
	h.reconcile()
	h.Expect(h.etcds.inspections).To(BeZero(), "it is decided")
	h.Expect(h.writes).To(BeEmpty())

	conditions.Set(&dead, metav1.Condition{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason})
	h.Expect(h.Status().Update(t.Context(), &dead)).To(Succeed())
	h.reconcile()
	h.Expect(h.etcds.calls).To(Equal([]string{"remove n0 through n1"}))
	h.finishMachine(dead.Name)
	h.reconcile()
	h.reconcile()
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	at := slices.IndexFunc(h.machines(), func(m clusterv1.Machine) bool { return m.Annotations[controlplanev1.RemediationForAnnotation] != "" })
	h.Expect(at).NotTo(Equal(-1), "in whose place it is")
	h.Expect(h.machines()[at].Annotations[controlplanev1.RemediationForAnnotation]).To(Equal(value))
}

func TestARemediationThatWasRecordedOnlyIsTakenUpAsItIs(t *testing.T) {
	h := newInstalledHub(t)
	h.keepMachines()
	dead := h.sicken(0)
	cp := h.controlPlane()
	value := fmt.Sprintf(`{"machine":%q,"timestamp":%q,"retryCount":0}`, dead.Name, time.Now().Add(-time.Minute).UTC().Format(time.RFC3339))
	metav1.SetMetaDataAnnotation(&cp.ObjectMeta, controlplanev1.RemediationInProgressAnnotation, value)
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	h.reconcile()
	h.get(dead.Name, &dead)
	h.Expect(dead.DeletionTimestamp).NotTo(BeNil())
	h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(controlplanev1.RemediationInProgressAnnotation, value))
}

func TestTheBooksOfARemediationAreClosed(t *testing.T) {
	h := newInstalledHub(t)
	cp := h.controlPlane()
	const value = `{"machine":"gone","timestamp":"2026-01-02T12:00:00Z","retryCount":2}`
	metav1.SetMetaDataAnnotation(&cp.ObjectMeta, controlplanev1.RemediationInProgressAnnotation, value)
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	m := h.machines()[1]
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, controlplanev1.RemediationForAnnotation, value)
	h.Expect(h.Update(t.Context(), &m)).To(Succeed())
	h.reconcile()
	h.elapse()
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.RemediationInProgressAnnotation))
	h.Expect(h.machines()[1].Annotations).To(HaveKeyWithValue(controlplanev1.RemediationForAnnotation, value), "it is kept on the Machine")
	last := h.controlPlane().Status.LastRemediation
	h.Expect(last.Machine).To(Equal("gone"))
	h.Expect(last.RetryCount).To(HaveValue(BeEquivalentTo(2)))
}

func TestTwoUnhealthyOfThreeAreKept(t *testing.T) {
	h := newInstalledHub(t)
	h.keepMachines()
	first, second := h.sicken(0), h.sicken(1)
	result := h.reconcile()
	h.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", etcdgate.InitialDelay)), "etcd cannot be watched")
	for _, m := range h.machines() {
		h.Expect(m.DeletionTimestamp).To(BeNil())
	}
	told := []*metav1.Condition{h.reportText(first.Name), h.reportText(second.Name)}
	h.Expect(told).To(ContainElement(And(HaveField("Reason", controlplanev1.MachineCannotBeRemediatedReason), HaveField("Message", ContainSubstring("etcd has lost its quorum")))))
	h.Expect(told).To(ContainElement(And(HaveField("Reason", controlplanev1.MachineRemediationDeferredReason), HaveField("Message", ContainSubstring("comes first")))))
	h.Expect(h.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.RemediationInProgressAnnotation))
	h.elapse()
	h.reconcile()
	h.Expect(conditions.GetReason(h.controlPlane(), controlplanev1.RemediatingCondition)).To(Equal(controlplanev1.MachineCannotBeRemediatedReason), "the alert is about this reason")
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.RemediatingCondition)).To(And(ContainSubstring(first.Name), ContainSubstring(second.Name), ContainSubstring("quorum")))
	h.Expect(conditions.IsFalse(h.controlPlane(), controlplanev1.ScalingDownCondition)).To(BeTrue(), "none is being deleted")

	h.etcds.inspections, h.writes = 0, nil
	h.reconcile()
	h.Expect(h.etcds.inspections).To(BeZero(), "it was looked at a moment ago")
	h.Expect(h.writes).To(BeEmpty())
}

func TestWhatIsUnknownOfEtcdKeepsAnUnhealthyMachine(t *testing.T) {
	for situation, tc := range map[string]struct {
		err     error
		message string
		again   bool
	}{
		"the cluster is away":      {cluster.ErrNotConnected, "does not answer", false},
		"something cannot be read": {errors.New("secret of a server"), "the log of the manager", true},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newInstalledHub(t)
			h.keepMachines()
			dead := h.sicken(0)
			h.etcds.observing = tc.err
			result := h.reconcile()
			h.Expect(h.machines()[0].DeletionTimestamp).To(BeNil())
			h.Expect(h.reportText(dead.Name)).To(And(HaveField("Reason", controlplanev1.MachineRemediationDeferredReason),
				HaveField("Message", And(ContainSubstring(tc.message), Not(ContainSubstring("secret"))))))
			h.Expect(result.RequeueAfter > 0 && result.RequeueAfter <= etcdgate.InitialDelay).To(Equal(tc.again))
		})
	}
}

func TestWhatIsKnownWithoutEtcdIsNotAskedOfIt(t *testing.T) {
	h := newInstalledHub(t)
	h.keepMachines()
	dead := h.sicken(0)
	h.workloads.facts.Upgrading = "4.20.1"
	h.reconcile()
	h.Expect(h.etcds.inspections).To(BeZero())
	h.Expect(h.reportText(dead.Name).Message).To(ContainSubstring("upgraded to 4.20.1"))
}

func TestAMachineThatWasDeletedAMomentAgoIsNotTakenForAnother(t *testing.T) {
	h := newInstalledHub(t)
	h.r.writer.Recent = newHub(t).r.writer.Recent // without time
	h.keepMachines()
	dead := h.sicken(0)
	h.r.writer.Recent.Record(machines.ReplacedKey(&dead), h.machines()[0].ResourceVersion)
	h.Expect(h.reconcile().RequeueAfter).To(BeNumerically(">", 0))
	h.Expect(h.etcds.inspections).To(BeZero())
	h.Expect(h.machines()[0].DeletionTimestamp).To(BeNil())
}

func TestAMachineThatIsHealthyAgainIsNotToBeRemediated(t *testing.T) {
	h := newInstalledHub(t)
	healthy := h.check(0, metav1.ConditionTrue, clusterv1.MachineOwnerRemediatedWaitingForRemediationReason)
	h.reconcile()
	h.Expect(h.reportText(healthy.Name)).To(BeNil())
	h.get(healthy.Name, &healthy)
	h.Expect(conditions.Has(&healthy, clusterv1.MachineHealthCheckSucceededCondition)).To(BeTrue(), "the conditions of others stay")
	h.writes = nil
	h.reconcile()
	h.Expect(h.writes).To(BeEmpty())
}

// reboot is what CAPM3 says of the reboots of a host.
func (h *hub) reboot(m clusterv1.Machine, phase string) {
	h.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": phase}}}
	u.SetGroupVersionKind(infraGV.WithKind("Metal3Remediation"))
	u.SetNamespace(lab)
	u.SetName(m.Name)
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: m.Name, UID: m.UID}})
	h.Expect(h.Create(h.t.Context(), u)).To(Succeed())
}

func TestAHostThatWasRebootedInVainIsReplaced(t *testing.T) {
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
			dead := h.sicken(0)
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
			h.elapse()
			h.reconcile()
			c := conditions.Get(h.controlPlane(), controlplanev1.RemediatingCondition)
			h.Expect(c).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring(dead.Name))))
		})
	}
}

func TestWithoutMetal3RemediationsNothingIsRead(t *testing.T) {
	h := newInstalledHub(t)
	h.r.trackReboots = func(client.Object) error { return errors.New("there is no such kind") }
	h.check(0, metav1.ConditionFalse, "")
	h.reconcile()
	h.Expect(h.machines()[0].DeletionTimestamp).To(BeNil())
}

func TestWhoseRebootChanged(t *testing.T) {
	h := newInstalledHub(t)
	u := &unstructured.Unstructured{}
	u.SetNamespace(lab)
	u.SetName(h.machines()[0].Name)
	h.Expect(h.r.ofReboot(t.Context(), u)).To(ConsistOf(HaveField("Name", "c1")))
	u.SetName("another")
	h.Expect(h.r.ofReboot(t.Context(), u)).To(BeEmpty())
}
