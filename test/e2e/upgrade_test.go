package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift/versionoperator"
)

// installedVersion is the release of the samples, nextPatch and nextMinor are targets of upgrades. The versions of
// Kubernetes of these releases differ.
const (
	installedVersion, nextPatch, nextMinor = "4.19.10", "4.19.20", "4.20.0"
	patches, minors                        = "stable-4.19", "stable-4.20"
)

var _ = Describe("An installed cluster", Label("upgrade"), func() {
	It("is upgraded to the next patch in place, Node by Node", Label("nightly"), func(ctx SpecContext) {
		cluster := apply(ctx, "ha", lab.Mutations{Namespace: "upgrade-patch", ClusterName: "patch", Edit: updatedInPlace(), Divert: lab.Forward})
		registerExtension(ctx, cluster.Namespace)
		waitAvailable(ctx, cluster)
		before := state(ctx, cluster)
		boots := bootCounts(before)
		publish(cluster, nextPatch, patches)
		Expect(cluster.Versions().PausePool(ctx, versionoperator.WorkerPool, true)).To(Succeed())
		cluster.Versions().Block("machine-config")

		By("requesting it: the operators are upgraded first")
		changeSpec(ctx, cluster, `{"distributionVersion":"`+nextPatch+`","upgrade":{"channel":"`+patches+`"}}`)
		Expect(waitRollingOut(ctx, cluster, "waiting on machine-config")).To(ContainSubstring("from v" + installedVersion + " to v" + nextPatch))
		s := wait(ctx, cluster, "reporting its progress", func(s *lab.State) bool { return s.ControlPlane.Status.Upgrade.Percentage != nil })
		Expect(s.ControlPlane.Status.Upgrade.DistributionVersion).To(Equal(nextPatch))
		Expect(s.ControlPlane.Status.DistributionVersion).To(Equal(installedVersion), "completed last")
		Expect(lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.MachinesUpToDateCondition).Status).To(BeEquivalentTo("False"))

		By("upgrading the hosts")
		cluster.Versions().Recover("machine-config")
		expectUpgraded(ctx, cluster, nextPatch)

		By("letting Cluster API update the workers")
		expectUpdatedInPlace(ctx, cluster, kubernetesOf(nextPatch), func() {
			Expect(cluster.Versions().PausePool(ctx, versionoperator.WorkerPool, false)).To(Succeed())
		})
		Expect(nodeReleases(ctx, cluster)).To(HaveEach(nextPatch), "the workers were upgraded afterwards")
		expectUnwiped(ctx, cluster, before)
		for name, n := range bootCounts(state(ctx, cluster)) {
			Expect(n).To(Equal(boots[name]+1), "%s was rebooted once", name)
		}
	}, NodeTimeout(2*installTimeout))

	It("is upgraded on a single host, whose API is down during its restart", Label("nightly"), func(ctx SpecContext) {
		cluster := apply(ctx, "sno", lab.Mutations{Namespace: "upgrade-single", ClusterName: "single"})
		waitAvailable(ctx, cluster)
		before := state(ctx, cluster)
		boots, pid := bootCounts(before), cluster.Server().Process().PID()
		expectOnlyRestart := watchRestart(cluster)
		release := cluster.Versions().HoldOperators()
		DeferCleanup(release)
		publish(cluster, nextPatch, patches)
		cluster.Versions().Block("machine-config") // otherwise the upgrade may end before the check
		changeSpec(ctx, cluster, `{"distributionVersion":"`+nextPatch+`","upgrade":{"channel":"`+patches+`"}}`)
		waitRollingOut(ctx, cluster, "from v"+installedVersion+" to v"+nextPatch)
		cluster.Versions().Recover("machine-config")

		By("reporting the restart, and no failure")
		expectReported(ctx, cluster, controlplanev1.AvailableCondition, metav1.ConditionUnknown,
			controlplanev1.ControlPlaneRestartingReason)
		release()
		expectUpgraded(ctx, cluster, nextPatch)
		expectUnwiped(ctx, cluster, before)
		Expect(cluster.Server().Process().PID()).NotTo(Equal(pid), "the API was down")
		expectOnlyRestart()
		name := before.Machines[0].Name
		Expect(bootCounts(state(ctx, cluster))[name]).To(Equal(boots[name] + 1))
		kubeconfigWorks(ctx, cluster, state(ctx, cluster))
	}, NodeTimeout(2*installTimeout))
})

// Releases 4.23 and 5.0 have the same minor version of Kubernetes, and no update graph of the laboratory has 5.0.
var _ = Describe("The next major version", Label("upgrade", "nightly"), func() {
	It("is requested by digest, outside of a topology, and gets another worker afterwards", func(ctx SpecContext) {
		const last, major = "4.22.7", "5.0.1"
		onlySimulated()
		_, err := laboratory.Registry.Publish(last)
		Expect(err).NotTo(HaveOccurred())
		cluster := apply(ctx, "ha", lab.Mutations{
			Namespace: "upgrade-major", ClusterName: "major", ExtraHosts: 1,
			Edit: edits(edit(controlPlaneKind, last, "spec", "distributionVersion"),
				// assisted-service has no OS image of 5.0
				edit("OpenshiftAssistedConfigTemplate", "4.22", "spec", "template", "spec", "osImageVersion")),
		})
		waitAvailable(ctx, cluster)
		before := state(ctx, cluster)
		release := publish(cluster, major)
		changeSpec(ctx, cluster, `{"distributionVersion":"`+major+`","config":{"releaseImage":"`+release.Image+`"}}`)
		expectUpgraded(ctx, cluster, major)
		expectFollowed(ctx, cluster, major, major)
		expectUpToDate(ctx, cluster, 2)
		expectUnwiped(ctx, cluster, before)

		Expect(cluster.Scale(ctx, 3)).To(Succeed())
		waitRecovered(ctx, cluster, 6)
		Eventually(ctx, func() ([]string, error) { return nodeReleases(ctx, cluster) }).WithTimeout(soon).Should(And(HaveLen(6), HaveEach(major)))
		expectFollowed(ctx, cluster, major, major)
		expectUpToDate(ctx, cluster, 3)
	}, NodeTimeout(3*installTimeout))
})

// Each spec starts with the cluster of the former one, which runs its release.
var _ = Describe("Upgrades", Ordered, Label("upgrade", "nightly"), func() {
	const (
		byDigest, outside, unrecorded, risky       = "4.19.21", "4.19.22", "4.19.23", "4.19.24"
		minorPatch, nextMinorPatch, unsigned, last = "4.20.1", "4.20.2", "4.20.3", "4.20.4"
	)
	var cluster *lab.Cluster
	var before *lab.State

	BeforeAll(func(ctx SpecContext) {
		onlySimulated()
		cluster = apply(ctx, "compact", lab.Mutations{Namespace: "upgrades", ClusterName: "ways", EtcdMembers: true})
		waitAvailable(ctx, cluster)
		expectHealthy(ctx, cluster)
		before = state(ctx, cluster)
	}, NodeTimeout(installTimeout+soon))

	AfterEach(func(ctx SpecContext) {
		if before != nil && !CurrentSpecReport().Failed() {
			expectUnwiped(ctx, cluster, before)
			expectHealthy(ctx, cluster)
		}
	}, NodeTimeout(2*soon))

	It("need the digest without an update graph, and lose no write of etcd", func(ctx SpecContext) {
		release := publish(cluster, byDigest)
		writer := cluster.StartWriting(ctx)
		fewestVoters := countVoters(ctx, cluster)
		changeSpec(ctx, cluster, `{"distributionVersion":"`+byDigest+`"}`)
		Expect(waitReason(ctx, cluster, controlplanev1.MachinesUpToDateCondition,
			controlplanev1.UpgradeNotOfferedReason)).To(ContainSubstring("config.releaseImage"))
		Expect(requestedUpdate(ctx, cluster)).To(BeNil(), "nothing was requested")

		changeSpec(ctx, cluster, `{"config":{"releaseImage":"`+release.Image+`"}}`)
		expectUpgraded(ctx, cluster, byDigest)
		Expect(requestedUpdate(ctx, cluster)).To(HaveValue(And(HaveField("Image", release.Image), HaveField("Force", false))))
		Expect(fewestVoters()).To(BeNumerically(">=", 3), "the smallest number of voters")
		expectNothingLost(ctx, cluster, writer)
		changeSpec(ctx, cluster, `{"config":{"releaseImage":null}}`)
	}, NodeTimeout(installTimeout))

	It("that other clients start are reported, and never reverted", func(ctx SpecContext) {
		publish(cluster, outside, patches)
		Expect(cluster.Versions().SetChannel(ctx, patches)).To(Succeed())
		update := &configv1.Update{Version: outside}
		Eventually(ctx, func() ([]configv1.Release, error) {
			version, err := cluster.Versions().ClusterVersion(ctx)
			return version.Status.AvailableUpdates, err
		}).Should(ContainElement(HaveField("Version", outside)))
		cluster.Versions().Block("machine-config")
		Expect(cluster.Versions().Request(ctx, update)).To(Succeed())
		waitRollingOut(ctx, cluster, "to v"+outside)
		cluster.Versions().Recover("machine-config")
		Expect(waitReason(ctx, cluster, controlplanev1.MachinesUpToDateCondition,
			controlplanev1.VersionMismatchReason)).To(ContainSubstring("set spec.distributionVersion to v" + outside))
		waitHistory(ctx, cluster, outside)
		Consistently(ctx, func() (*configv1.Update, error) {
			return requestedUpdate(ctx, cluster),
				nil
		}).WithTimeout(quiet).Should(HaveValue(HaveField("Version", outside)))
		changeSpec(ctx, cluster, `{"distributionVersion":"`+outside+`"}`)
		expectUpgraded(ctx, cluster, outside)
	}, NodeTimeout(installTimeout))

	It("with a risk wait until the user accepts the risk by name, also if the cluster does not record that", func(ctx SpecContext) {
		release := publish(cluster, unrecorded)
		release.Channels, release.Risks = []string{patches}, []versionoperator.Risk{
			{Name: "NoisyFans", Message: "Fans turn fast."}, {Name: "ColdHosts", Message: "Hosts start slowly below zero."},
		}
		cluster.Versions().Offer(release)
		changeSpec(ctx, cluster, `{"distributionVersion":"`+unrecorded+`","upgrade":{"channel":"`+patches+`","acceptedRisks":["ColdHosts"]}}`)
		Expect(waitReason(ctx, cluster, controlplanev1.MachinesUpToDateCondition, controlplanev1.UpgradeRiskNotAcceptedReason)).
			To(And(ContainSubstring("NoisyFans (Fans turn fast.)"), Not(ContainSubstring("ColdHosts"))))
		Expect(requestedUpdate(ctx, cluster)).To(Or(BeNil(), HaveValue(Not(HaveField("Version", unrecorded)))), "nothing was requested")

		changeSpec(ctx, cluster, `{"upgrade":{"acceptedRisks":["ColdHosts","NoisyFans"]}}`)
		expectUpgraded(ctx, cluster, unrecorded)
		Expect(requestedUpdate(ctx, cluster)).To(HaveValue(And(HaveField("Version", unrecorded), HaveField("Force", false),
			HaveField("AcceptRisks", BeEmpty()))), "the cluster would refuse accepted risks")
	}, NodeTimeout(installTimeout))

	It("with a risk, and of a cluster with a degraded operator, are requested when both are accepted", func(ctx SpecContext) {
		release := publish(cluster, risky, patches)
		cluster.Versions().FailUntil("dns", "A bug.", risky)
		release.Risks = []versionoperator.Risk{{Name: "SlowBoot", Message: "Hosts boot slowly."}}
		cluster.Versions().Offer(release)
		cluster.Versions().RecordRisks(true)
		changeSpec(ctx, cluster, `{"distributionVersion":"`+risky+`"}`)
		Expect(waitReason(ctx, cluster, controlplanev1.MachinesUpToDateCondition,
			controlplanev1.UpgradeRiskNotAcceptedReason)).To(ContainSubstring("SlowBoot (Hosts boot slowly.)"))
		changeSpec(ctx, cluster, `{"upgrade":{"acceptedRisks":["SlowBoot"]}}`)
		Expect(waitReason(ctx, cluster, controlplanev1.MachinesUpToDateCondition,
			controlplanev1.WaitingForHealthyClusterReason)).To(ContainSubstring("ClusterOperator dns is degraded"))
		changeSpec(ctx, cluster, `{"upgrade":{"toleratedOperators":["dns"]}}`)
		expectUpgraded(ctx, cluster, risky)
		Expect(requestedUpdate(ctx, cluster)).To(HaveValue(And(
			HaveField("Version", risky), HaveField("Image", release.Image), HaveField("Force", false),
			HaveField("AcceptRisks", []configv1.AcceptRisk{{Name: "SlowBoot"}}))))
		version, err := cluster.Versions().ClusterVersion(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(version.Status.History[0].AcceptedRisks).To(ContainSubstring("SlowBoot"))
		changeSpec(ctx, cluster, `{"upgrade":{"toleratedOperators":null}}`)
	}, NodeTimeout(installTimeout))

	It("to another minor version wait for an acknowledgement", func(ctx SpecContext) {
		const gate, description = "ack-4.19-admissionregistration-v1beta1-api-removals-in-4.20", "Kubernetes 1.33 removes an API."
		publish(cluster, nextMinor, minors)
		Expect(cluster.Versions().AddGate(ctx, gate, description)).To(Succeed())
		changeSpec(ctx, cluster, `{"distributionVersion":"`+nextMinor+`","upgrade":{"channel":"`+minors+`"}}`)
		Expect(waitReason(ctx, cluster, controlplanev1.MachinesUpToDateCondition,
			controlplanev1.UpgradeRefusedReason)).To(And(ContainSubstring(description), ContainSubstring(gate)))
		Expect(state(ctx, cluster).ControlPlane.Status.DistributionVersion).NotTo(Equal(nextMinor))

		changeSpec(ctx, cluster, `{"upgrade":{"acknowledgements":["`+gate+`"]}}`)
		expectUpgraded(ctx, cluster, nextMinor)
		Expect(cluster.Versions().Acknowledged(ctx)).To(HaveKeyWithValue(gate, "true"))
		Eventually(ctx, func() string {
			node := nodeOf(ctx, workloadOf(cluster), before.Machines[0])
			return node.Status.NodeInfo.KubeletVersion
		}).WithTimeout(soon).Should(Equal(kubernetesOf(nextMinor)))
	}, NodeTimeout(installTimeout))

	It("are changed to another patch while they run, also while the API is down", func(ctx SpecContext) {
		publish(cluster, minorPatch, minors)
		publish(cluster, nextMinorPatch, minors)
		cluster.Versions().Block("machine-config")
		changeSpec(ctx, cluster, `{"distributionVersion":"`+minorPatch+`"}`)
		waitRollingOut(ctx, cluster, "to v"+minorPatch)
		cluster.Server().Process().Kill()
		waitRollingOut(ctx, cluster, "to v"+minorPatch+", whose API server does not answer now")
		changeSpec(ctx, cluster, `{"distributionVersion":"`+nextMinorPatch+`"}`)
		Expect(cluster.Server().Process().Start(ctx)).To(Succeed())
		waitRollingOut(ctx, cluster, "to v"+nextMinorPatch)
		cluster.Versions().Recover("machine-config")
		expectUpgraded(ctx, cluster, nextMinorPatch)
	}, NodeTimeout(installTimeout))

	It("that are refused are withdrawn with the version, and forced only by name", func(ctx SpecContext) {
		release := publish(cluster, unsigned, minors)
		release.Unsigned = true
		cluster.Versions().Offer(release)
		changeSpec(ctx, cluster, `{"distributionVersion":"`+unsigned+`"}`)
		waitReason(ctx, cluster, controlplanev1.MachinesUpToDateCondition, controlplanev1.UpgradeRefusedReason)
		Expect(requestedUpdate(ctx, cluster)).To(HaveValue(HaveField("Version", unsigned)))
		changeSpec(ctx, cluster, `{"distributionVersion":"`+nextMinorPatch+`"}`)
		Eventually(ctx, func() *configv1.Update { return requestedUpdate(ctx, cluster) }).WithTimeout(soon).Should(BeNil(),
			"otherwise the cluster would start once it has the signature")
		expectUpgraded(ctx, cluster, nextMinorPatch)

		changeSpec(ctx, cluster, `{"distributionVersion":"`+unsigned+`","upgrade":{"waivePreconditionsAndSignaturesFor":"`+unsigned+`"}}`)
		expectUpgraded(ctx, cluster, unsigned)
		Expect(requestedUpdate(ctx, cluster)).To(HaveValue(HaveField("Force", true)))
	}, NodeTimeout(installTimeout))

	It("wait until the pool of the masters is not paused, and survive managers that crash at each of their writes", func(ctx SpecContext) {
		publish(cluster, last, minors)
		Expect(cluster.Versions().PausePool(ctx, versionoperator.MasterPool, true)).To(Succeed())
		changeSpec(ctx, cluster, `{"distributionVersion":"`+last+`"}`)
		Expect(waitReason(ctx, cluster, controlplanev1.MachinesUpToDateCondition,
			controlplanev1.WaitingForHealthyClusterReason)).To(ContainSubstring("master is paused"))
		live := crashAtWrites(ctx, "upgrades")
		Expect(cluster.Versions().PausePool(ctx, versionoperator.MasterPool, false)).To(Succeed())
		expectUpgraded(ctx, cluster, last)
		Expect(live()).To(BeNumerically(">", 5), "crashes")
		Expect(requestedUpdate(ctx, cluster)).To(HaveValue(And(HaveField("Version", last), HaveField("Force", false))))
	}, NodeTimeout(installTimeout))
})

// publish makes a release available to a cluster: in channels, or only by its image.
func publish(cluster *lab.Cluster, version string, channels ...string) versionoperator.Release {
	GinkgoHelper()
	release, err := cluster.Versions().Publish(version, channels...)
	Expect(err).NotTo(HaveOccurred())
	return release
}

// changeSpec changes the spec of the control plane.
func changeSpec(ctx context.Context, cluster *lab.Cluster, spec string) {
	GinkgoHelper()
	patch(ctx, controlPlaneOf(cluster), `{"spec":`+spec+`}`)
}

// beforeRetry returns the requested update of the cluster; nil: none.
func requestedUpdate(ctx context.Context, cluster *lab.Cluster) *configv1.Update {
	GinkgoHelper()
	version, err := cluster.Versions().ClusterVersion(ctx)
	Expect(err).NotTo(HaveOccurred())
	return version.Spec.DesiredUpdate
}

// kubernetesOf returns the version of Kubernetes of a release.
func kubernetesOf(release string) string {
	GinkgoHelper()
	version, err := openshift.KubernetesVersion(release)
	Expect(err).NotTo(HaveOccurred())
	return version
}

// waitRollingOut waits until the control plane reports an upgrade with a text, and returns the message.
func waitRollingOut(ctx context.Context, cluster *lab.Cluster, what string) string {
	GinkgoHelper()
	s := wait(ctx, cluster, "rolling out: "+what, func(s *lab.State) bool {
		c := lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.RollingOutCondition)
		return c.Status == "True" && strings.Contains(c.Message, what)
	})
	return lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.RollingOutCondition).Message
}

// waitHistory waits until the cluster reports that it runs a version.
func waitHistory(ctx context.Context, cluster *lab.Cluster, version string) {
	GinkgoHelper()
	Eventually(ctx, func() (configv1.UpdateHistory, error) {
		found, err := cluster.Versions().ClusterVersion(ctx)
		if err != nil {
			return configv1.UpdateHistory{}, err
		}
		return found.Status.History[0], nil
	}).WithTimeout(installTimeout).Should(And(HaveField("Version", version), HaveField("State", configv1.CompletedUpdate)))
}

// expectUpgraded waits until the control plane runs a version, and reports no further work.
func expectUpgraded(ctx context.Context, cluster *lab.Cluster, version string) {
	GinkgoHelper()
	s := wait(ctx, cluster, "upgraded to "+version, func(s *lab.State) bool {
		conditions := s.ControlPlane.Status.Conditions
		return s.ControlPlane.Status.DistributionVersion == version && lab.Condition(conditions,
			controlplanev1.MachinesUpToDateCondition).Status == "True" &&
			lab.Condition(conditions, controlplanev1.RollingOutCondition).Status == "False" && s.Available()
	})
	Expect(s.ControlPlane.Status.Upgrade).To(BeZero())
	Expect(s.ControlPlane.Status.Version).To(Equal(kubernetesOf(version)))
	Expect(s.ControlPlane.Status.Versions).To(HaveExactElements(HaveField("Version", kubernetesOf(version))))
	for _, m := range s.Machines {
		if m.IsControlPlane() {
			Expect(m.Spec.Version).To(Equal(kubernetesOf(version)), "Machine %s", m.Name)
		}
	}
	waitHistory(ctx, cluster, version)
}

// watchRestart returns a check of the reports of the control plane since this call. They have to contain the
// planned restart of its host, and no failure: none of the conditions that alerts and Argo CD read was False.
func watchRestart(cluster *lab.Cluster) (check func()) {
	conditions := []string{
		controlplanev1.AvailableCondition,
		controlplanev1.ControlPlaneComponentsHealthyCondition,
		controlplanev1.EtcdClusterHealthyCondition,
	}
	before := map[string][]string{}
	for _, condition := range conditions {
		before[condition] = cluster.ReportsOf(condition)
	}
	return func() {
		GinkgoHelper()
		const restarting = "Unknown " + controlplanev1.ControlPlaneRestartingReason
		for _, condition := range conditions {
			reported := slices.DeleteFunc(cluster.ReportsOf(condition), func(report string) bool {
				return slices.Contains(before[condition], report)
			})
			Expect(slices.DeleteFunc(reported, func(report string) bool {
				return strings.HasPrefix(report, "True ")
			})).To(Or(BeEmpty(), Equal([]string{restarting})), condition)
		}
	}
}

// expectUnwiped checks that all Machines are the same as before, and that no disk was wiped.
func expectUnwiped(ctx context.Context, cluster *lab.Cluster, before *lab.State) {
	GinkgoHelper()
	after := state(ctx, cluster)
	Expect(after.Machines).To(HaveLen(len(before.Machines)))
	for _, m := range before.Machines {
		Expect(has(after, m)).To(BeTrue(), "Machine %s", m.Name)
		Expect(rackHost(m).Losses()).To(BeEmpty(), "host of Machine %s", m.Name)
	}
}

// bootCounts returns how often the host of each Machine was booted.
func bootCounts(s *lab.State) map[string]int {
	boots := map[string]int{}
	for _, m := range s.Machines {
		boots[m.Name] = len(rackHost(m).Boots())
	}
	return boots
}

// nodeReleases returns the releases of the configurations of the Nodes of a cluster.
func nodeReleases(ctx context.Context, cluster *lab.Cluster) ([]string, error) {
	workload, err := cluster.Workload()
	if err != nil {
		return nil, err
	}
	nodes := &corev1.NodeList{}
	if err := workload.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("cannot list the Nodes: %w", err)
	}
	releases := make([]string, 0, len(nodes.Items))
	for i := range nodes.Items {
		config := &machineconfigv1.MachineConfig{}
		name := nodes.Items[i].Annotations["machineconfiguration.openshift.io/currentConfig"]
		if err := workload.Get(ctx, client.ObjectKey{Name: name}, config); err != nil {
			return nil, fmt.Errorf("cannot read MachineConfig %s: %w", name, err)
		}
		releases = append(releases, config.Annotations["machineconfiguration.openshift.io/release-image-version"])
	}
	return releases, nil
}
