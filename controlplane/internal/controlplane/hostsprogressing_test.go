package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/event"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/informer"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// hostIn returns a host of the cluster in a stage of its installation since a time.
func hostIn(name string, stage aiv1beta1.HostStage, since time.Time) *aiv1beta1.Agent {
	agent := &aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{
		Namespace: lab, Name: name, Labels: map[string]string{aiv1beta1.InfraEnvNameLabel: name},
	}, Spec: aiv1beta1.AgentSpec{
		Hostname: name, ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: lab, Name: "c1"},
	}}
	agent.Status.DebugInfo.State, agent.Status.Role = aiv1beta1.HostStatusInstallingInProgress, aiv1beta1.HostRoleMaster
	agent.Status.Progress.CurrentStage, agent.Status.Progress.StageStartTime = stage, &metav1.Time{Time: since.Truncate(time.Second)}
	return agent
}

func TestLaggingHostIsReportedInTime(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	recorder := record.NewFakeRecorder(100)
	h.reconcile()
	h.setState("installing", "InstallationInProgress", 40)
	h.reconcile()
	h.recorder.EventRecorder = recorder
	now := time.Now().Truncate(time.Second)
	h.clock.now = func() time.Time { return now }
	slow := hostIn("rack1-u7", aiv1beta1.HostStageWritingImageToDisk, now.Add(-20*time.Minute))
	for _, agent := range []*aiv1beta1.Agent{
		slow,
		hostIn("rack1-u8", aiv1beta1.HostStageConfiguring, now.Add(-6*time.Minute)),
		hostIn("rack1-u9", aiv1beta1.HostStageRebooting, now.Add(-8*time.Minute)),
	} {
		h.Expect(h.Create(t.Context(), agent)).To(Succeed())
	}
	h.Expect(h.reconcile().RequeueAfter).To(BeNumerically("<=", 4*time.Minute), "the deadline is not missed")
	h.Expect(conditions.Has(h.controlPlane(), controlplanev1.HostsProgressingCondition)).To(BeFalse())

	now = now.Add(4 * time.Minute)
	h.reconcile()
	reported := conditions.Get(h.controlPlane(), controlplanev1.HostsProgressingCondition)
	h.Expect(reported).NotTo(BeNil())
	h.Expect(reported.Message).To(HavePrefix("host rack1-u7 is in stage"))
	h.Expect(recorder.Events).To(Receive(HavePrefix("Warning HostsLagging host rack1-u7 ")))

	version := h.controlPlane().ResourceVersion
	now = now.Add(time.Hour)
	h.Expect(h.reconcile().RequeueAfter).NotTo(BeNumerically("<", time.Second), "and no state is polled")
	h.Expect(h.controlPlane().ResourceVersion).To(Equal(version), "the host is reported once")
	h.Expect(recorder.Events).To(BeEmpty())

	slow.Status.Progress.CurrentStage, slow.Status.Progress.StageStartTime = aiv1beta1.HostStageRebooting, &metav1.Time{Time: now}
	h.Expect(h.Update(t.Context(), slow)).To(Succeed())
	h.reconcile()
	h.Expect(conditions.Has(h.controlPlane(), controlplanev1.HostsProgressingCondition)).To(BeFalse(), "the host made progress")
}

func TestStageOfAHostTriggersReconcile(t *testing.T) {
	g := NewWithT(t)
	before, after := hostIn("a", aiv1beta1.HostStageInstalling, time.Now()), hostIn("a", aiv1beta1.HostStageRebooting, time.Now())
	g.Expect(informer.AgentChanges.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(BeTrue())
	later := before.DeepCopy()
	later.Status.Progress.StageStartTime.Time = later.Status.Progress.StageStartTime.Add(time.Minute)
	g.Expect(informer.AgentChanges.Update(event.UpdateEvent{
		ObjectOld: before, ObjectNew: later,
	})).To(BeTrue(), "the stage started again, or has a date now")
	undated := before.DeepCopy()
	undated.Status.Progress.StageStartTime = nil
	g.Expect(informer.AgentChanges.Update(event.UpdateEvent{ObjectOld: undated, ObjectNew: before})).To(BeTrue())
	same := before.DeepCopy()
	same.Status.Progress.InstallationPercentage = 50
	g.Expect(informer.AgentChanges.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: same})).To(BeFalse())
}
