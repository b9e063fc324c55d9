package status

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
)

func TestOnlyWords(t *testing.T) {
	before := &controlplanev1.OpenshiftAssistedControlPlaneStatus{
		Replicas: ptr.To[int32](3), ReadyReplicas: ptr.To[int32](0), ObservedGeneration: 1,
		Installation: controlplanev1.InstallationStatus{
			Phase: controlplanev1.InstallationInstalling, Percentage: ptr.To[int32](10), Progress: "Installing 10%",
		},
		Conditions: []metav1.Condition{condition.False("A", controlplanev1.WaitingForHostsReason, "for one")},
	}
	for situation, tc := range map[string]struct {
		change func(*controlplanev1.OpenshiftAssistedControlPlaneStatus)
		words  bool
	}{
		"another message": {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) { s.Conditions[0].Message = "for two" }, true},
		"another reason": {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) {
			s.Conditions[0].Reason = controlplanev1.ValidationFailedReason
		}, true},
		"an unlisted reason": {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) { s.Conditions[0].Reason = "Forgotten" }, false},
		"a user action is required": {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) {
			s.Conditions[0].Reason = controlplanev1.PreparationFailedReason
		}, false},
		"more is installed": {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) {
			s.Installation.Percentage, s.Installation.Progress = ptr.To[int32](20), "Installing 20%"
		}, true},
		"one of three is ready": {
			func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) { s.ReadyReplicas = ptr.To[int32](1) }, true,
		},
		"a condition changes its status": {
			func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) {
				s.Conditions[0] = condition.True("A", "Done")
			}, false,
		},
		"a new condition": {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) {
			s.Conditions = append(s.Conditions, condition.True("B", "Done"))
		}, false},
		"the next phase": {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) {
			s.Installation.Phase = controlplanev1.InstallationFinalizing
		}, false},
		"a Machine is created": {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) { s.Replicas = ptr.To[int32](4) }, false},
		"another spec":         {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) { s.ObservedGeneration = 2 }, false},
		"the version":          {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) { s.Version = "v4.19.3" }, false},
		"the cluster answers": {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) {
			s.Initialization.ControlPlaneInitialized = ptr.To(true)
		}, false},
	} {
		t.Run(situation, func(t *testing.T) {
			after := before.DeepCopy()
			tc.change(after)
			NewWithT(t).Expect(OnlyWords(before, after)).To(Equal(tc.words))
		})
	}
}

func TestFailureIsReportedAtOnce(t *testing.T) {
	g := NewWithT(t)
	before := &controlplanev1.OpenshiftAssistedControlPlaneStatus{
		Conditions: []metav1.Condition{condition.False("A", controlplanev1.InstallationFailedReason, "it failed")},
	}
	after := before.DeepCopy()
	g.Expect(OnlyWords(before, after)).To(BeTrue(), "no change")
	after.Conditions[0].Message = "it failed: host rack1-u7 has no disk"
	g.Expect(OnlyWords(before, after)).To(BeFalse(), "the host is known by now")
}

// urgentReasons are the reasons that are reported at once. Only the test reads the list: it makes the absence
// of a reason from deferrable a decision.
var urgentReasons = []string{
	controlplanev1.ValidationsIgnoredReason, controlplanev1.WorkersNotCreatedReason,
	controlplanev1.InvalidConfigurationReason, controlplanev1.UnsupportedVersionReason, controlplanev1.PullSecretMissingReason,
	controlplanev1.ManifestsMissingReason, controlplanev1.ClusterImageSetMissingReason, controlplanev1.ReleaseImageNotFoundReason,
	controlplanev1.RegistryUnavailableReason,
	controlplanev1.InstallationNotOursReason,
	controlplanev1.ForeignAgentsBoundReason,
	controlplanev1.InstallationRejectedReason,
	controlplanev1.PreparationFailedReason, controlplanev1.UserActionRequiredReason, controlplanev1.InstallationFailedReason,
	controlplanev1.InfraTemplateMissingReason,
	controlplanev1.MachineCreationFailedReason,
	controlplanev1.MachinesWithoutOwnerReason,
	controlplanev1.NodeWithoutMachineReason,
	controlplanev1.ReregisteredReason,
	controlplanev1.KubeconfigRefusedReason, controlplanev1.VersionChangeNotSupportedReason,
	controlplanev1.KubernetesVersionMismatchReason, controlplanev1.UpgradeConcurrencyTooLowReason, controlplanev1.TopologySkipsWorkersReason,
	controlplanev1.VersionMismatchReason,
	controlplanev1.ClusterVersionUnavailableReason,
	controlplanev1.UpgradeFailingReason,
	controlplanev1.MachineConfigPoolDegradedReason,
	controlplanev1.UpgradeNotOfferedReason,
	controlplanev1.UpgradeRefusedReason,
	controlplanev1.UpgradeRiskNotAcceptedReason,
	controlplanev1.AssistedServiceNotRespondingReason,
	controlplanev1.KubeconfigUnauthorizedReason,
	controlplanev1.KubeconfigUntrustedReason,
	controlplanev1.KubeconfigNotOursReason,
	controlplanev1.WaitingForImportReason,
	controlplanev1.EtcdAlarmReason, controlplanev1.EtcdHostNotIdentifiedReason, controlplanev1.ReleasedHostRunningReason,
	controlplanev1.NodeDeletionForbiddenReason, controlplanev1.ControlPlaneLabelsMissingReason,
	controlplanev1.EtcdUnknownReason, controlplanev1.EtcdQuorumAtRiskReason, controlplanev1.EtcdTopologyNotSupportedReason,
	controlplanev1.LastEtcdMemberReason, controlplanev1.WaitingForMachineAPIReason, controlplanev1.CertificateRequestMismatchReason,
	controlplanev1.PreflightWarningsReason,
	controlplanev1.HostsLaggingReason,
	controlplanev1.BootstrapProviderOutdatedReason,
	controlplanev1.ArbiterMismatchReason,
	controlplanev1.EtcdClusterNotHealthyReason,
	controlplanev1.InfrastructureDeletionStuckReason, controlplanev1.DrainRuleNotOursReason,
}

func TestEveryReasonIsUrgentOrDeferrable(t *testing.T) {
	g := NewWithT(t)
	urgentNames, deferrableNames := listed(t, "urgency_test.go", "urgentReasons"), listed(t, "urgency.go", "deferrable")
	for _, reason := range reasons(t) {
		g.Expect(slices.Contains(urgentNames, reason)).NotTo(
			Equal(slices.Contains(deferrableNames, reason)), "%s: add it either to deferrable, or to urgentReasons", reason,
		)
	}
	for _, reason := range urgentReasons {
		g.Expect(deferrable).NotTo(ContainElement(reason), "under another name")
	}
}

// reasons returns the names of the constants of all reasons that this project defines.
func reasons(t *testing.T) []string {
	t.Helper()
	var names []string
	ast.Inspect(parsedFile(t, "../../api/v1beta1/conditions.go"), func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasSuffix(spec.Names[0].Name, "Reason") {
			names = append(names, spec.Names[0].Name)
		}
		return true
	})
	NewWithT(t).Expect(names).NotTo(BeEmpty())
	return names
}

// listed returns the names of this project's constants in a list.
func listed(t *testing.T, file, list string) []string {
	t.Helper()
	var names []string
	ast.Inspect(parsedFile(t, file), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != list {
			return true
		}
		ast.Inspect(spec, func(n ast.Node) bool {
			if item, ok := n.(*ast.SelectorExpr); ok {
				if from, ok := item.X.(*ast.Ident); ok && from.Name == "controlplanev1" {
					names = append(names, item.Sel.Name)
				}
			}
			return true
		})
		return false
	})
	return names
}

func parsedFile(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return file
}
