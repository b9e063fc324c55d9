package judge

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

// passed are the reasons of conditions with their healthy status.
var passed = []string{
	"DiscoveryImageReady", "DataSecretAvailable", "HostIdentified", "HostBound", "HostApproved", "HostInstalled", "NotDeleting",
	"ReleaseImageResolved", "Installed", "KubeconfigAvailable", "Initialized", "ComponentsHealthy", "Available", "MachinesCreated",
	"Healthy", "NotReleasing", "PreflightPassed",
}

// acting are the reasons for which the user has to act.
var acting = []string{
	"WaitingForNMStateConfig", "ClusterDeploymentNotOurs", "PullSecretMissing", "DiscoveryImageFailed", "DiscoveryImageUnavailable",
	"InfraEnvNotOurs", "InvalidConfiguration", "IgnitionDownloadFailed", "BootImageRejected", "BootImageOutdated", "ServerInUse",
	"BMCOfAnotherServer", "HostRefused", "HostNotResponding", "RoleConflict", "HostBelowRequirements", "InstallationDiskNotFound",
	"ClusterReregistered", "NodeNameTaken", "FencingCredentialsUnusable", "HostRestoredWithoutHistory", "HostBootedDiscoveryAgain",
	"AssistedServiceNotResponding", "MachinePoolNotSupported", "NoHostFits", "TooFewHosts", "NMStateConfigMismatch", "HostFailed",
	"HostUnhealthy", "HostUnmanaged", "HostInAnotherCluster",
	// Its stage decides.
	"HostInstalling",
	"UnsupportedVersion", "ManifestsMissing", "ClusterImageSetMissing", "ReleaseImageNotFound", "RegistryUnavailable", "InstallationNotOurs",
	"ForeignAgentsBound", "InstallationRejected", "VersionChangeNotSupported", "VersionMismatch", "KubernetesVersionMismatch",
	"UpgradeConcurrencyTooLow", "TopologySkipsWorkers", "ValidationsIgnored", "WorkersNotCreated", "PreparationFailed",
	"UserActionRequired", "Reregistered", "KubeconfigRefused", "KubeconfigUnauthorized", "KubeconfigUntrusted", "KubeconfigNotOurs",
	"ConnectionDown", "HealthUnknown", "ComponentsNotHealthy", "NotAvailable", "InfraTemplateMissing", "MachineCreationFailed",
	"MachinesWithoutOwner", "BootstrapProviderOutdated", "ArbiterMismatch", "InfrastructureDeletionStuck", "EtcdUnknown", "EtcdAlarm",
	"EtcdHostNotIdentified", "ReleasedHostRunning", "NodeDeletionForbidden", "ControlPlaneLabelsMissing", "NotHealthy",
	"NodeWithoutMachine", "EtcdQuorumAtRisk", "EtcdTopologyNotSupported", "LastEtcdMember", "DrainRuleNotOurs", "WaitingForMachineAPI",
	"ClusterVersionUnavailable", "MachineConfigPoolDegraded", "UpgradeFailing", "UpgradeNotOffered", "UpgradeRefused",
	"UpgradeRiskNotAccepted", "PreflightWarnings", "PreflightIncomplete", "CertificateRequestMismatch", "HostsLagging",
}

// TestEveryReasonIsClassified reads the reasons of both providers. A new reason has to be added to waits, or above.
func TestEveryReasonIsClassified(t *testing.T) {
	g := NewWithT(t)
	found := 0
	for _, file := range []string{"bootstrap/api/v1beta1/conditions.go", "controlplane/api/v1beta1/conditions.go"} {
		for _, reason := range reasonsIn(g, "../../../"+file) {
			found++
			classes := 0
			if _, isWait := waits[reason]; isWait {
				classes++
			}
			for _, class := range [][]string{failures, passed, acting} {
				if slices.Contains(class, reason) {
					classes++
				}
			}
			g.Expect(classes).To(Equal(1), "classes of %s in %s", reason, file)
		}
	}
	g.Expect(found).To(BeNumerically(">", 150))
}

// reasonsIn returns the values of the constants of a file whose names end with Reason. Those of Cluster API are not
// read.
func reasonsIn(g Gomega, path string) []string {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	g.Expect(err).NotTo(HaveOccurred())
	var reasons []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, isValue := n.(*ast.ValueSpec)
		if !isValue || !strings.HasSuffix(spec.Names[0].Name, "Reason") {
			return true
		}
		if literal, isLiteral := spec.Values[0].(*ast.BasicLit); isLiteral {
			value, err := strconv.Unquote(literal.Value)
			g.Expect(err).NotTo(HaveOccurred())
			reasons = append(reasons, value)
		}
		return true
	})
	return reasons
}

func TestEveryStateHasAnUrgency(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Failed.Compare(Blocked)).To(BeNumerically("<", 0))
	g.Expect(Blocked.NeedsAttention()).To(BeTrue())
	g.Expect(Slow.NeedsAttention()).To(BeTrue())
	g.Expect(Paused.NeedsAttention()).To(BeTrue(), "nothing continues until the user ends the pause")
	g.Expect(Progressing.Compare(Ready)).To(BeNumerically("<", 0))
}

func TestUsualTimeOfStage(t *testing.T) {
	g := NewWithT(t)
	g.Expect(UsualStage("Writing image to disk").Minutes()).To(BeEquivalentTo(30))
	g.Expect(UsualStage("A stage of a newer assisted-service").Minutes()).To(BeEquivalentTo(60))
	g.Expect(UsualStage("Done")).To(BeZero())
	_, isWait := waits[bootstrapv1.HostInstallingReason]
	g.Expect(isWait).To(BeFalse(), "its stage has the usual time")
}
