package tasks

import (
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/sample"
)

func TestMachineVersionAfterInstallationIsRunningRelease(t *testing.T) {
	g := NewWithT(t)
	s := sample.Facts(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Status.Installation.Phase = controlplanev1.InstallationInstalled
	})
	s.Decide()
	found := &Findings{Version: semver.MustParse("4.19.3")}
	g.Expect(found.MachineVersion(s, nil)).To(BeEmpty(), "the running release is unknown: the Machines stay unchanged")
	s.Install = sample.Install("adding-hosts", hivev1.ClusterInstallCondition{
		Type: hiveext.ClusterCompletedCondition, Status: "True", Reason: hiveext.ClusterInstalledReason,
	})
	s.Workload.OpenShiftVersion = "4.19.9"
	s.Decide()
	g.Expect(found.MachineVersion(s, nil)).To(Equal("v4.19.9"))
}
