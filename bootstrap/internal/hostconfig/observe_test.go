package hostconfig

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// stageTime is the start of the stage that the Agent of the host reports.
var stageTime = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

// progress sets a stage of a host's installation, as assisted-service does.
func (w *world) progress(name, state string, stage aiv1beta1.HostStage, since metav1.Time, percentage int64) {
	w.t.Helper()
	agent := w.agent(name)
	w.change(agent, func() {
		agent.Status.DebugInfo.State = state
		agent.Status.Progress = aiv1beta1.HostProgressInfo{
			CurrentStage: stage, StageStartTime: &since, InstallationPercentage: percentage,
		}
	})
}

// expectStage expects a stage of the host in the status.
func (w *world) expectStage(stage aiv1beta1.HostStage, since metav1.Time, percentage int32) {
	w.t.Helper()
	status := w.config().Status
	w.Expect(status.InstallationProgress).To(BeEquivalentTo(stage))
	w.Expect(status.InstallationStageStartTime).NotTo(BeNil())
	w.Expect(status.InstallationStageStartTime.UTC()).To(Equal(since.UTC()))
	w.Expect(status.InstallationPercentage).To(HaveValue(Equal(percentage)))
}

func TestStagesOfHostAreReportedWithTime(t *testing.T) {
	w := installing(t)
	w.progress("a", "installing-in-progress", aiv1beta1.HostStageWritingImageToDisk, stageTime, 33)
	w.reconcile()
	w.lasts(bootstrapv1.HostInstalledCondition, metav1.ConditionFalse, bootstrapv1.HostInstallingReason)
	w.expectStage(aiv1beta1.HostStageWritingImageToDisk, stageTime, 33)

	before := w.reports
	w.change(w.agent("a"), func() {}) // of status.progress.progressInfo, which is not decoded
	w.clock = w.clock.Add(time.Minute)
	w.reconcile()
	w.clock = w.clock.Add(reconcile.DeferralPeriod)
	w.reconcile()
	w.Expect(w.reports).To(Equal(before), "progress within a stage is not written")

	later := metav1.NewTime(stageTime.Add(5 * time.Minute))
	w.progress("a", "installing-in-progress", aiv1beta1.HostStageRebooting, later, 55)
	w.reconcile()
	w.Expect(w.reports).To(Equal(before), "a stage may be over soon")
	w.clock = w.clock.Add(reconcile.DeferralPeriod)
	w.reconcile()
	w.Expect(w.reports).To(Equal(before + 1))
	w.expectStage(aiv1beta1.HostStageRebooting, later, 55)

	w.restart()
	config := w.config()
	config.Status.InstallationProgress, config.Status.InstallationStageStartTime = "", nil
	config.Status.InstallationPercentage = ptr.To[int32](1)
	w.Expect(w.Status().Update(w.t.Context(), config)).To(Succeed())
	w.reconcile()
	w.clock = w.clock.Add(reconcile.DeferralPeriod)
	w.reconcile()
	w.expectStage(aiv1beta1.HostStageRebooting, later, 55)

	done := metav1.NewTime(stageTime.Add(15 * time.Minute))
	w.progress("a", "installed", aiv1beta1.HostStageDone, done, 100)
	w.reconcile()
	w.expectStage(aiv1beta1.HostStageDone, done, 100)
}

func TestTimeOfAnotherStageIsNotReported(t *testing.T) {
	w := installing(t)
	w.progress("a", "installed", aiv1beta1.HostStageJoined, stageTime, 88)
	w.reconcile()
	w.Expect(w.config().Status.InstallationProgress).To(BeEquivalentTo(aiv1beta1.HostStageDone))
	w.Expect(w.config().Status.InstallationStageStartTime).To(BeNil())
	w.Expect(w.config().Status.InstallationPercentage).To(BeNil())
}

// Each report is a request, and a hub reports the end of the installation of each host.
func TestEndOfInstallationIsReportedOnce(t *testing.T) {
	w := installing(t)
	w.progress("a", "installing-in-progress", aiv1beta1.HostStageWritingImageToDisk, stageTime, 33)
	w.reconcile()
	w.clock = w.clock.Add(reconcile.DeferralPeriod)
	w.reconcile()
	w.Expect(meta.FindStatusCondition(w.config().Status.Conditions, bootstrapv1.HostAvailableCondition)).NotTo(BeNil())
	before := w.reports

	w.progress("a", "installed", aiv1beta1.HostStageDone, stageTime, 100)
	w.reconcile()
	w.wants(bootstrapv1.HostInstalledCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
	w.reconcile()
	w.clock = w.clock.Add(reconcile.DeferralPeriod)
	w.reconcile()
	w.Expect(w.reports).To(Equal(before + 1))
	w.Expect(meta.FindStatusCondition(w.config().Status.Conditions, bootstrapv1.HostAvailableCondition)).To(BeNil())
}
