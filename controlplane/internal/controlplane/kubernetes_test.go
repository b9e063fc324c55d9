package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// unreachableImage is a release image in a registry that no hub reaches: its Kubernetes version cannot be read.
const unreachableImage = "127.0.0.1:1/ocp/release@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// untilKnown reconciles until the query of the registry has ended.
func (h *hub) untilKnown() {
	h.t.Helper()
	h.Eventually(func() string {
		h.reconcile()
		return conditions.GetReason(h.controlPlane(), controlplanev1.InstalledCondition)
	}).WithTimeout(time.Minute).ShouldNot(Equal(controlplanev1.WaitingForReleaseImageReason))
}

func (h *hub) requestKubernetes(version string) {
	h.t.Helper()
	cp := h.controlPlane()
	cp.Spec.Version = version
	h.Expect(h.Update(h.t.Context(), cp)).To(Succeed())
}

// From 1.14 on Cluster API accepts no correction once the cluster is installed.
func TestOtherMinorVersionOfKubernetesIsNotInstalled(t *testing.T) {
	h := newHub(t, world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Version, cp.Spec.Config.ReleaseImage = "v1.33.5", unreachableImage
	})...).withTime()
	h.untilKnown()
	c := h.condition(controlplanev1.InstalledCondition)
	h.Expect(c.Reason).To(Equal(controlplanev1.KubernetesVersionMismatchReason))
	h.Expect(c.Message).To(ContainSubstring("release 4.19.3 has Kubernetes 1.32"))
	h.Expect(h.machines()).To(BeEmpty(), "no host is switched on")

	h.requestKubernetes("v1.32.99")
	h.reconcile()
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(3), "the patch is believed")
	for _, m := range h.machines() {
		h.Expect(m.Spec.Version).To(Equal("v1.32.99"))
	}
	h.Expect(h.controlPlane().Status.Version).To(Equal("v1.32.99"))
}

func TestRegisteredInstallationIsBlockedByAnotherKubernetesVersion(t *testing.T) {
	h := newHub(t, world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Version, cp.Spec.Config.ReleaseImage = "v1.32.6", unreachableImage
	})...).withTime()
	h.untilKnown()
	h.reconcile()
	_, install := h.registration()
	h.Expect(install.Spec.HoldInstallation).To(BeFalse())

	h.requestKubernetes("v1.33.5")
	h.reconcile()
	_, install = h.registration()
	h.Expect(install.Spec.HoldInstallation).To(BeTrue())
	h.Expect(h.condition(controlplanev1.InstalledCondition).Reason).To(Equal(controlplanev1.KubernetesVersionMismatchReason))

	h.requestKubernetes("v1.32.6")
	h.endDeferral()
	h.reconcile()
	_, install = h.registration()
	h.Expect(install.Spec.HoldInstallation).To(BeFalse())
}

func TestUpgradeWaitsForTheKubernetesVersionOfTheRelease(t *testing.T) {
	h := installedHub(t)
	h.versions.seen.Offers = []workload.Offer{{Version: "4.20.8", Image: unreachableImage}}
	h.requestKubernetes("v1.32.6")
	h.upgradeTo("4.20.8") // the release first
	h.Eventually(func() string {
		h.endDeferral()
		h.settle()
		return h.condition(controlplanev1.MachinesUpToDateCondition).Reason
	}).WithTimeout(time.Minute).Should(Equal(controlplanev1.KubernetesVersionMismatchReason))
	c := h.condition(controlplanev1.MachinesUpToDateCondition)
	h.Expect(c.Message).To(And(ContainSubstring("The upgrade is not requested"), ContainSubstring("release 4.20.8 has Kubernetes 1.33")))
	h.Expect(h.versions.requests).To(BeEmpty())
	h.Expect(h.controlPlane().Status.Version).To(Equal("v1.32.6"))

	h.requestKubernetes("v1.33.5")
	h.Eventually(func() string {
		h.endDeferral()
		h.settle()
		return h.condition(controlplanev1.MachinesUpToDateCondition).Message
	}).WithTimeout(time.Minute).Should(ContainSubstring("release 4.20.8 cannot be read from its image"))
	h.Expect(h.versions.requests).To(BeEmpty(), "a registry that answers late may contradict the spec")
}

func TestKubernetesVersionAheadOfTheReleaseNamesTheReleaseToSet(t *testing.T) {
	h := installedHub(t)
	h.requestKubernetes("v1.33.5")
	h.settle()
	h.Expect(h.condition(controlplanev1.MachinesUpToDateCondition)).To(And(
		HaveField("Reason", controlplanev1.KubernetesVersionMismatchReason),
		HaveField("Message", ContainSubstring("Set spec.distributionVersion to a release with Kubernetes v1.33.5")),
	))
	h.Expect(h.versions.inspections).To(BeZero())
	h.Expect(h.controlPlane().Status.Version).To(Equal("v1.32.6"), "Cluster API waits")
	h.expectMachines("v1.32.6")
}

func TestWrongPatchIsReportedAtTheFirstNode(t *testing.T) {
	h := installedHub(t)
	h.requestKubernetes("v1.32.5")
	h.settle()
	h.Expect(h.condition(controlplanev1.MachinesUpToDateCondition)).To(And(
		HaveField("Reason", controlplanev1.KubernetesVersionMismatchReason),
		HaveField("Message", And(ContainSubstring("release 4.19.3, which runs, has Kubernetes v1.32.6"), ContainSubstring("to v1.32.6"))),
	))
}

// 4.22.7, 4.22.11 and 4.22.15 have the same Kubernetes version.
func TestReleaseWithTheSameKubernetesVersionChangesNoMachine(t *testing.T) {
	h := installedHub(t)
	h.requestKubernetes("v1.32.6")
	h.settle()
	versions := map[string]string{}
	for _, m := range h.machines() {
		versions[m.Name] = m.ResourceVersion
	}
	h.upgradeTo("4.19.9")
	h.workloads.facts.Upgrading, h.workloads.facts.Rollout = "4.19.9", &workload.Rollout{Requested: workload.Update{Version: "4.19.9"}}
	h.settle()
	h.Expect(h.condition(controlplanev1.RollingOutCondition).Status).To(BeEquivalentTo("True"))
	h.workloads.facts.OpenShiftVersion, h.workloads.facts.Upgrading, h.workloads.facts.Rollout = "4.19.9", "", nil
	h.settle()
	h.Expect(h.controlPlane().Status.DistributionVersion).To(Equal("4.19.9"))
	h.expectVersions("v1.32.6")
	for _, m := range h.machines() {
		h.Expect(m.ResourceVersion).To(Equal(versions[m.Name]), m.Name)
	}
}

func TestRunningReleaseIsPublishedForHostsThatJoin(t *testing.T) {
	h := installedHub(t)
	_, install := h.registration()
	h.Expect(install.Annotations).To(HaveKeyWithValue(bootstrapv1.RunningReleaseAnnotation, "4.19.3"))
	h.workloads.facts.Upgrading = "4.20.8"
	h.settle()
	_, install = h.registration()
	h.Expect(install.Annotations).To(HaveKeyWithValue(bootstrapv1.RunningReleaseAnnotation, "4.19.3"), "the upgrade is not complete")
	h.workloads.facts.OpenShiftVersion, h.workloads.facts.Upgrading = "4.20.8", ""
	h.settle()
	_, install = h.registration()
	h.Expect(install.Annotations).To(HaveKeyWithValue(bootstrapv1.RunningReleaseAnnotation, "4.20.8"))
	h.workloads.facts = workload.State{}
	h.settle()
	_, install = h.registration()
	h.Expect(install.Annotations).To(HaveKeyWithValue(bootstrapv1.RunningReleaseAnnotation, "4.20.8"), "the last known release")
}
