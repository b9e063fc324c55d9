package status

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// TestInstalledClusterThatIsNotImported: Installed has no problem in it, and RegistrationHealthy reports why no host is added.
func TestInstalledClusterThatIsNotImported(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	imported := func(state string, conditions ...hivev1.ClusterInstallCondition) *hiveext.AgentClusterInstall {
		install := installOf(state, conditions...)
		install.Labels, install.Annotations = factsOf(nil).Labels(), map[string]string{facts.ImportedAnnotation: ""}
		install.CreationTimestamp = metav1.NewTime(noon)
		return install
	}
	refused := hivev1.ClusterInstallCondition{
		Type:    hiveext.ClusterSpecSyncedCondition,
		Status:  "False",
		Reason:  hiveext.ClusterInputErrorReason,
		Message: "bad pull secret at https://img.example/?api_key=hush",
	}
	failed := hivev1.ClusterInstallCondition{
		Type: hiveext.ClusterSpecSyncedCondition, Status: "False", Reason: hiveext.ClusterBackendErrorReason, Message: "no database",
	}
	completed := hivev1.ClusterInstallCondition{
		Type: hiveext.ClusterCompletedCondition, Status: "True", Reason: hiveext.ClusterInstalledReason,
	}
	elsewhere := installOf("")
	elsewhere.Labels = factsOf(nil).Labels()
	for situation, tc := range map[string]struct {
		install *hiveext.AgentClusterInstall
		blocked string
		after   time.Duration
		reason  string
		message string
	}{
		"import blocked": {
			blocked: "the cluster does not answer", reason: controlplanev1.WaitingForImportReason, message: "does not answer",
		},
		"no blocker known": {},
		"import requested": {install: imported(""), reason: controlplanev1.WaitingForImportReason, message: "import the installed cluster"},
		"import requested long ago": {
			install: imported(""),
			after:   assisted.ResponseTimeout,
			reason:  controlplanev1.AssistedServiceNotRespondingReason,
			message: "AgentClusterInstall",
		},
		"import rejected": {
			install: imported("", refused), reason: controlplanev1.InvalidConfigurationReason, message: "bad pull secret",
		},
		"import failed":             {install: imported("", failed), reason: controlplanev1.WaitingForImportReason, message: "no database"},
		"imported: hosts are added": {install: imported("adding-hosts", completed)},
		"the assisted-service that installed the cluster is removed": {install: elsewhere},
	} {
		t.Run(situation, func(t *testing.T) {
			g, f := NewWithT(t), factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
				cp.Status.Installation.Phase = controlplanev1.InstallationInstalled
			})
			f.Install, f.Progress = tc.install, assisted.Observe(tc.install)
			v := viewOf(f)
			v.Now = noon.Add(tc.after)
			if tc.blocked != "" {
				v.Found.Block(tasks.Installation, controlplanev1.WaitingForImportReason, tc.blocked)
			}
			g.Expect(v.installedCondition()).To(Equal(condition.True(controlplanev1.InstalledCondition, controlplanev1.InstalledReason)))
			c := v.installation().Registration()
			if tc.reason == "" {
				g.Expect(c).To(BeNil())
			} else {
				g.Expect(*c).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", tc.reason)))
				g.Expect(c.Message).To(And(ContainSubstring(tc.message), Not(ContainSubstring("hush"))))
			}
			f.Workload.Connected = true
			waits := v.UntilChange() > 0
			g.Expect(waits).To(
				Equal(tc.install != nil && tc.install != elsewhere && tc.install.Status.DebugInfo.State == "" && tc.after == 0),
				"requeued at the end of the time",
			)
		})
	}
}
