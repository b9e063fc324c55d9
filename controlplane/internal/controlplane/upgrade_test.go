package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/clusterversion"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// fakeVersions returns what a test sets, and records inspections and requests.
type fakeVersions struct {
	seen         workload.ClusterVersion
	inspections  int
	requests     []workload.UpdateRequest
	resumed      []string
	observe      error
	requestError error
}

func (f *fakeVersions) Observe(context.Context, client.ObjectKey) (workload.ClusterVersion, error) {
	f.inspections++
	return f.seen, f.observe
}

func (f *fakeVersions) RequestUpdate(_ context.Context, _ client.ObjectKey, request workload.UpdateRequest) error {
	if f.requestError != nil {
		return f.requestError
	}
	f.requests = append(f.requests, request)
	if request.Update != nil {
		f.seen.Requested, f.seen.Ours = *request.Update, true
	}
	if request.Withdraw {
		f.seen.Requested, f.seen.Ours = workload.Update{}, false
	}
	f.seen.Channel = cmp.Or(request.Channel, f.seen.Channel)
	return nil
}

func (f *fakeVersions) ResumePools(_ context.Context, _ client.ObjectKey, pools []string) error {
	f.resumed = append(f.resumed, pools...)
	return f.requestError
}

// installedHub returns a hub with an installed cluster of three Machines, each with a Node. Its update graph
// offers 4.19.9.
func installedHub(t *testing.T) *hub {
	t.Helper()
	h := newHub(t, world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Spec.Config.ReleaseImage = "" })...).withTime()
	h.requestRelease("4.19.3", digest)
	h.install()
	for i, m := range h.machines() {
		m.Status.NodeRef.Name = "n" + string(rune('0'+i))
		h.Expect(h.Status().Update(t.Context(), &m)).To(Succeed())
		h.workloads.facts.Nodes = append(h.workloads.facts.Nodes, workload.Node{Name: m.Status.NodeRef.Name, KubeletVersion: "v1.32.6"})
	}
	h.workloads.facts.ReleaseImage = digest
	h.versions.seen = workload.ClusterVersion{
		Runs: "4.19.3", ResourceVersion: "7", Channel: "stable-4.19", Offers: []workload.Offer{{Version: "4.19.9", Image: otherDigest}},
	}
	h.settle()
	return h
}

// settle reconciles until the cache has all writes.
func (h *hub) settle() {
	h.t.Helper()
	for range 3 {
		h.reconcile()
	}
}

// upgradeTo sets a release in the spec, without an image.
func (h *hub) upgradeTo(version string) {
	h.t.Helper()
	h.requestRelease(version, "")
	h.settle()
}

func (h *hub) condition(conditionType string) metav1.Condition {
	h.t.Helper()
	c := conditions.Get(h.controlPlane(), conditionType)
	h.Expect(c).NotTo(BeNil())
	return *c
}

func TestUpgradeIsRequestedOnceAndFollowed(t *testing.T) {
	h := installedHub(t)
	recorder := record.NewFakeRecorder(100)
	h.recorder.EventRecorder = recorder
	h.Expect(h.versions.inspections).To(BeZero(), "no other release is requested")
	h.upgradeTo("v4.19.9")
	h.Expect(h.versions.requests).To(ConsistOf(workload.UpdateRequest{
		ResourceVersion: "7", Update: &workload.Update{Version: "4.19.9", Image: otherDigest},
	}))
	h.Expect(h.condition(controlplanev1.MachinesUpToDateCondition)).To(
		And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", controlplanev1.UpgradeInProgressReason)),
	)
	h.Expect(h.condition(controlplanev1.RollingOutCondition).Status).To(
		Equal(metav1.ConditionFalse), "the cluster does not show the request yet",
	)
	h.expectMachines("v1.32.6")

	// The cluster begins, and two of three hosts have their new configuration.
	inspections := h.versions.inspections
	h.workloads.facts.Upgrading, h.workloads.facts.Rollout = "4.19.9", &workload.Rollout{
		Requested: workload.Update{Version: "4.19.9"},
		Progress:  "Working towards 4.19.9: 870 of 903 done (96% complete), waiting on machine-config",
	}
	h.workloads.facts.KubernetesVersion, h.workloads.facts.APIServersVersion = "v1.32.7", "1.32.7"
	for i := range 2 {
		h.workloads.facts.Nodes[i].KubeletVersion = "v1.32.7"
	}
	h.settle()
	h.endDeferral()
	h.reconcile()
	h.Expect([]int{
		h.versions.inspections, len(h.versions.requests),
	}).To(Equal([]int{inspections, 1}), "the cluster already works towards the release")
	var versions []string
	for _, m := range h.machines() {
		versions = append(versions, m.Spec.Version)
	}
	h.Expect(versions).To(Equal([]string{"v1.32.7", "v1.32.7", "v1.32.6"}))
	status := h.controlPlane().Status
	h.Expect(status.Version).To(Equal("v1.32.7"), "of the API servers")
	h.Expect(status.DistributionVersion).To(Equal("4.19.3"), "the upgrade is not complete")
	h.Expect(status.Upgrade.DistributionVersion).To(Equal("4.19.9"))
	h.Expect(*status.Upgrade.Percentage).To(BeEquivalentTo(90))
	h.Expect(*status.UpToDateReplicas).To(BeEquivalentTo(2))
	h.Expect(h.condition(controlplanev1.RollingOutCondition).Message).To(
		And(
			ContainSubstring("from v4.19.3 to v4.19.9"),
			ContainSubstring("waiting on machine-config"),
			ContainSubstring("1 Machine is not up to date"),
		),
	)

	last := h.workloads.facts
	h.workloads.facts = workload.State{} // the API server restarts with its host
	h.settle()
	h.endDeferral()
	h.reconcile()
	h.Expect(h.controlPlane().Status.Upgrade.DistributionVersion).To(Equal("4.19.9"), "the last observed state")
	h.Expect(h.condition(controlplanev1.RollingOutCondition)).To(
		And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", ContainSubstring("does not answer now"))),
	)
	versions = nil
	for _, m := range h.machines() {
		versions = append(versions, m.Spec.Version)
	}
	h.Expect(versions).To(Equal([]string{"v1.32.7", "v1.32.7", "v1.32.6"}), "the versions are unchanged")

	h.workloads.facts = last // the last host follows
	h.workloads.facts.Nodes[2].KubeletVersion = "v1.32.7"
	h.settle()
	h.endDeferral()
	h.reconcile()
	h.Expect(h.controlPlane().Status.DistributionVersion).To(Equal("4.19.3"), "the cluster does not report the end of the upgrade yet")

	h.workloads.facts = workload.State{
		Connected: true, OpenShiftVersion: "4.19.9", ReleaseImage: otherDigest, KubernetesVersion: "v1.32.7",
	}
	h.settle()
	h.expectVersions("v1.32.7")
	h.Expect(h.controlPlane().Status.DistributionVersion).To(Equal("4.19.9"))
	h.Expect(h.controlPlane().Status.Upgrade).To(BeZero())
	h.Expect(h.condition(controlplanev1.RollingOutCondition).Status).To(Equal(metav1.ConditionFalse))
	h.Expect(h.condition(controlplanev1.MachinesUpToDateCondition).Status).To(Equal(metav1.ConditionTrue))
	close(recorder.Events)
	h.Expect(recorder.Events).To(Receive(ContainSubstring("UpgradeRequested")))
	h.Expect(recorder.Events).To(Receive(Equal("Normal UpgradeCompleted The cluster runs v4.19.9 now")))
	h.Expect(recorder.Events).To(BeClosed(), "each once")
}

// In an EUS upgrade the pool of the workers is paused until the control plane is two minor versions ahead.
func TestPausedPoolIsReportedUntilItsWorkersFollowed(t *testing.T) {
	h := installedHub(t)
	h.Expect(h.workloads.poolsRequired).To(BeFalse(), "the cluster is not being upgraded")
	h.requestRelease("v4.19.9", "")
	cluster := &h.workloads.facts
	cluster.Upgrading, cluster.PoolsKnown, cluster.Pools = "4.19.9", true, []workload.Pool{{Name: "worker", Paused: true}}
	h.settle()
	h.Expect(h.condition(controlplanev1.RollingOutCondition).Message).To(ContainSubstring("MachineConfigPool worker is paused"))

	cluster.Pools[0].Behind = true
	h.settle()
	h.Expect(h.controlPlane().Status.PoolsBehind).To(ConsistOf("worker"))
	cluster.OpenShiftVersion, cluster.ReleaseImage, cluster.Upgrading = "4.19.9", otherDigest, ""
	h.settle()
	h.expectVersions("v1.32.6")
	condition := h.condition(controlplanev1.RollingOutCondition)
	h.Expect(condition.Status).To(Equal(metav1.ConditionFalse))
	h.Expect(condition.Message).To(ContainSubstring("MachineConfigPool worker is paused"))
	h.Expect(h.workloads.poolsRequired).To(BeTrue(), "the workers lag behind")

	cluster.PoolsKnown, cluster.Pools = false, nil // the manager restarts
	h.settle()
	h.endDeferral()
	h.reconcile()
	h.Expect(h.condition(controlplanev1.RollingOutCondition)).To(Equal(condition))
	h.Expect(h.workloads.poolsRequired).To(BeTrue())

	cluster.PoolsKnown = true
	h.settle()
	h.endDeferral()
	h.reconcile()
	h.Expect(h.condition(controlplanev1.RollingOutCondition).Message).To(BeEmpty())
	h.Expect(h.controlPlane().Status.PoolsBehind).To(BeEmpty())
	h.Expect(h.workloads.poolsRequired).To(BeFalse())
}

// ACM's ClusterImageSets name their images by tag, and are deleted when they are old.
func TestOfferedReleaseNeedsNoClusterImageSet(t *testing.T) {
	for situation, set := range map[string]*hivev1.ClusterImageSet{
		"it names its image by tag": {
			ObjectMeta: metav1.ObjectMeta{Name: "img4.19.3-appsub"},
			Spec:       hivev1.ClusterImageSetSpec{ReleaseImage: "quay.io/ocp-release:4.19.3-x86_64"},
		},
		"it was deleted": nil,
	} {
		t.Run(situation, func(t *testing.T) {
			h := installedHub(t)
			if set != nil {
				h.Expect(h.Create(t.Context(), set)).To(Succeed())
			}
			cp := h.controlPlane()
			cp.Spec.Config.ClusterImageSetRef = &controlplanev1.ClusterImageSetReference{Name: "img4.19.3-appsub"}
			h.Expect(h.Update(t.Context(), cp)).To(Succeed())
			h.upgradeTo("v4.19.9")
			h.Expect(h.versions.requests).To(ConsistOf(workload.UpdateRequest{
				ResourceVersion: "7", Update: &workload.Update{Version: "4.19.9", Image: otherDigest},
			}))
			h.Expect(h.condition(controlplanev1.MachinesUpToDateCondition).Reason).To(Equal(controlplanev1.UpgradeInProgressReason))
		})
	}
}

func TestUpgradeThatFixesAnOperatorIsRequested(t *testing.T) {
	h := installedHub(t)
	recorder := record.NewFakeRecorder(100)
	h.recorder.EventRecorder = recorder
	h.versions.seen.Unhealthy = []workload.Ailment{{Operator: "insights", Message: "ClusterOperator insights is degraded"}}
	h.upgradeTo("v4.19.9")
	h.Expect(h.versions.requests).To(BeEmpty())
	h.Expect(h.condition(controlplanev1.MachinesUpToDateCondition)).To(
		And(
			HaveField("Reason", controlplanev1.WaitingForHealthyClusterReason),
			HaveField("Message", ContainSubstring("spec.upgrade.toleratedOperators")),
		),
	)

	cp := h.controlPlane()
	cp.Spec.Upgrade.ToleratedOperators = []string{"insights"}
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	now := h.r.Clock.Now().Add(etcdgate.Interval)
	h.clock.now = func() time.Time { return now }
	h.settle()
	h.endDeferral()
	h.reconcile()
	h.Expect(h.versions.requests).To(HaveLen(1))
	h.Expect(h.condition(controlplanev1.MachinesUpToDateCondition).Message).To(
		ContainSubstring("Tolerated: ClusterOperator insights is degraded"),
	)
	close(recorder.Events)
	h.Expect(recorder.Events).To(
		Receive(
			Equal(
				"Normal UpgradeRequested Requested an upgrade of the cluster from v4.19.3 to v4.19.9. Tolerated: ClusterOperator insights is degraded",
			),
		),
	)
}

func TestRefusedUpgradeIsReported(t *testing.T) {
	h := installedHub(t)
	h.versions.seen.Requested = workload.Update{Version: "4.19.9"}
	h.workloads.facts.Rollout = &workload.Rollout{
		Requested: workload.Update{Version: "4.19.9"},
		Refused:   "Preconditions failed for payload loaded: Cluster operator etcd should not be upgraded",
	}
	h.upgradeTo("v4.19.9")
	h.Expect(h.versions.requests).To(BeEmpty(), "the release was requested before")
	c := h.condition(controlplanev1.MachinesUpToDateCondition)
	h.Expect(c.Reason).To(Equal(controlplanev1.UpgradeRefusedReason))
	h.Expect(c.Message).To(ContainSubstring("Preconditions failed"))
	h.Expect(h.controlPlane().Status.Upgrade).To(BeZero(), "nothing is rolled out")
}

func TestRefusedRequestIsReported(t *testing.T) {
	h := installedHub(t)
	h.versions.requestError = apierrors.NewInvalid(schema.GroupKind{Kind: "ClusterVersion"}, "version", nil)
	h.upgradeTo("v4.19.9")
	h.Expect(h.condition(controlplanev1.MachinesUpToDateCondition).Reason).To(Equal(controlplanev1.InvalidConfigurationReason))
}

func TestUpgradeIsRequestedAgainAfterAConflict(t *testing.T) {
	h := installedHub(t)
	h.versions.requestError = apierrors.NewConflict(schema.GroupResource{Resource: "clusterversions"}, "version", errors.New("changed"))
	h.requestRelease("v4.19.9", "")
	h.Expect(h.reconcile().RequeueAfter).To(BeNumerically(">", 0))
	h.versions.requestError = nil
	h.settle()
	h.Expect(h.versions.requests).To(HaveLen(1))
}

func TestUnreadableVersionBlocksAnUpgrade(t *testing.T) {
	h := installedHub(t)
	h.versions.observe = errors.New("secret address 10.0.0.1")
	h.upgradeTo("v4.19.9")
	c := h.condition(controlplanev1.MachinesUpToDateCondition)
	h.Expect(c.Reason).To(Equal(controlplanev1.ClusterVersionUnavailableReason))
	h.Expect(c.Message).NotTo(ContainSubstring("10.0.0.1"))
	h.Expect(h.versions.requests).To(BeEmpty())
}

func TestBusyAPIServerIsNoFailureOfAnUpgradeAtOnce(t *testing.T) {
	h := installedHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.versions.observe = fmt.Errorf("cannot read ClusterVersion: %w", apierrors.NewServiceUnavailable("etcd has no leader"))
	h.upgradeTo("v4.19.9")
	h.Expect(h.condition(controlplanev1.MachinesUpToDateCondition)).To(
		And(HaveField("Reason", controlplanev1.UpgradeInProgressReason), HaveField("Message", ContainSubstring("not requested yet"))),
	)
	now = now.Add(kube.TransientPeriod)
	h.settle()
	h.Expect(h.condition(controlplanev1.MachinesUpToDateCondition)).To(HaveField("Reason", controlplanev1.ClusterVersionUnavailableReason))
	h.versions.observe = nil
	now = now.Add(kube.TransientPeriod)
	h.settle()
	h.Expect(h.versions.requests).NotTo(BeEmpty())
}

func TestLastingFailureOfARequestIsReported(t *testing.T) {
	h := installedHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.versions.requestError = fmt.Errorf("cannot write ClusterVersion: %w", apierrors.NewServiceUnavailable("etcd has no leader"))
	h.upgradeTo("v4.19.9")
	h.Expect(h.condition(controlplanev1.MachinesUpToDateCondition)).To(HaveField("Reason", controlplanev1.UpgradeInProgressReason))
	now = now.Add(kube.TransientPeriod)
	h.settle()
	h.Expect(h.condition(controlplanev1.MachinesUpToDateCondition)).To(
		HaveField("Reason", controlplanev1.ClusterVersionUnavailableReason), "the version was readable all the time",
	)
}

func TestChannelIsSetForAnUpgrade(t *testing.T) {
	h := installedHub(t)
	cp := h.controlPlane()
	cp.Spec.Upgrade.Channel = "eus-4.20"
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	h.settle()
	h.Expect(h.versions.requests).To(BeEmpty(), "a user may select another channel in the cluster")
	h.upgradeTo("v4.19.9")
	h.Expect(h.versions.requests).To(ConsistOf(workload.UpdateRequest{
		ResourceVersion: "7", Channel: "eus-4.20",
	}), "the releases of the new channel are not known yet")
	now := h.r.Clock.Now()
	h.clock.now = func() time.Time { return now.Add(etcdgate.Interval) }
	h.settle()
	h.Expect(h.versions.requests).To(HaveLen(2))
	h.Expect(h.versions.requests[1].Update).To(HaveValue(Equal(workload.Update{Version: "4.19.9", Image: otherDigest})))
}

// Two clients that overwrite each other must not do so without pause.
func TestForeignChangeIsNotOverwrittenAtOnce(t *testing.T) {
	h := installedHub(t)
	now := h.r.Clock.Now()
	h.clock.now = func() time.Time { return now }
	h.upgradeTo("v4.19.9")
	for range 3 {
		h.versions.seen.Requested = workload.Update{}
		now = now.Add(etcdgate.Interval)
		h.settle()
	}
	h.Expect(h.versions.requests).To(HaveLen(1))
	h.endDeferral()
	now = now.Add(etcdgate.Interval)
	h.reconcile()
	h.Expect(h.condition(controlplanev1.MachinesUpToDateCondition).Message).To(
		ContainSubstring("Another client changed the requested release"),
	)
	now = now.Add(clusterversion.InitialRequestDelay)
	h.settle()
	h.Expect(h.versions.requests).To(HaveLen(2))
}

func TestUnwantedRequestIsWithdrawn(t *testing.T) {
	h := installedHub(t)
	now := h.r.Clock.Now()
	h.clock.now = func() time.Time { now = now.Add(etcdgate.Interval); return now }
	h.upgradeTo("v4.19.9")
	h.workloads.facts.Rollout = &workload.Rollout{Requested: workload.Update{Version: "4.19.9"}, Pending: true, Refused: "no signature"}
	h.settle()
	h.Expect(h.versions.requests).To(HaveLen(1))
	h.upgradeTo("v4.19.3")
	h.Expect(h.versions.requests).To(HaveLen(2))
	h.Expect(h.versions.requests[1].Withdraw).To(BeTrue(), "the cluster would start the upgrade as soon as it has the signature")
}

func TestMissingRightIsReported(t *testing.T) {
	h := installedHub(t)
	h.versions.requestError = apierrors.NewForbidden(schema.GroupResource{Resource: "clusterversions"}, "version", errors.New("no"))
	h.upgradeTo("v4.19.9")
	h.Expect(h.condition(controlplanev1.MachinesUpToDateCondition).Reason).To(Equal(controlplanev1.ClusterVersionUnavailableReason))
}

func TestUpgradeEndsWhenTheClusterReportsIt(t *testing.T) {
	h := installedHub(t)
	h.upgradeTo("v4.19.9")
	h.workloads.facts.Upgrading, h.workloads.facts.Rollout = "4.19.9", &workload.Rollout{
		Requested: workload.Update{Version: "4.19.9"}, Failing: "MachineConfigPool worker is degraded",
	}
	h.settle()
	h.endDeferral()
	h.reconcile()
	h.Expect(*h.controlPlane().Status.UpToDateReplicas).To(BeEquivalentTo(3))
	h.Expect(h.condition(controlplanev1.MachinesUpToDateCondition)).To(
		And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", controlplanev1.UpgradeInProgressReason)),
	)
	h.Expect(h.condition(controlplanev1.RollingOutCondition)).To(
		And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", controlplanev1.UpgradeFailingReason)),
	)
	h.Expect(h.controlPlane().Status.DistributionVersion).To(Equal("4.19.3"))
}

func TestExternalUpgradeIsNotReverted(t *testing.T) {
	h := installedHub(t)
	h.workloads.facts.Upgrading, h.workloads.facts.Rollout = "4.20.1", &workload.Rollout{
		Requested: workload.Update{Version: "4.20.1"}, Progress: "Working towards 4.20.1",
	}
	h.settle()
	h.Expect(h.versions.requests).To(BeEmpty())
	h.Expect(h.condition(controlplanev1.MachinesUpToDateCondition)).To(
		And(
			HaveField("Reason", controlplanev1.VersionMismatchReason),
			HaveField("Message", ContainSubstring("set spec.distributionVersion to v4.20.1")),
		),
	)
	h.Expect(h.condition(controlplanev1.RollingOutCondition).Status).To(Equal(metav1.ConditionTrue))
	for _, m := range h.machines() {
		h.Expect(conditions.IsTrue(&m, clusterv1.MachineUpToDateCondition)).To(BeTrue(), "its kubelet has the version of the API servers")
	}
	h.workloads.facts.KubernetesVersion, h.workloads.facts.APIServersVersion = "v1.33.5", "1.33.5"
	h.settle()
	for _, m := range h.machines() {
		h.Expect(conditions.IsFalse(&m, clusterv1.MachineUpToDateCondition)).To(BeTrue())
	}
}

// workersOf creates a MachineDeployment of a version. The MachineSet of its Machines had another version.
func (h *hub) workersOf(version string) {
	h.t.Helper()
	template := func(version string) clusterv1.MachineTemplateSpec {
		return clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{ClusterName: "cluster1", Version: version}}
	}
	meta := metav1.ObjectMeta{Namespace: lab, Name: "workers", UID: "deployment"}
	h.Expect(h.Create(h.t.Context(), &clusterv1.MachineDeployment{
		ObjectMeta: meta, Spec: clusterv1.MachineDeploymentSpec{ClusterName: "cluster1", Template: template(version)},
	})).To(Succeed())
	for name, version := range map[string]string{"set": "v1.32.6", "alone": "v1.32.6"} {
		meta := metav1.ObjectMeta{Namespace: lab, Name: name, UID: types.UID(name)}
		if name == "set" {
			meta.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment", Name: "workers", UID: "deployment", Controller: ptr.To(true)}}
		}
		h.Expect(h.Create(h.t.Context(), &clusterv1.MachineSet{
			ObjectMeta: meta, Spec: clusterv1.MachineSetSpec{ClusterName: "cluster1", Template: template(version)},
		})).To(Succeed())
	}
}

// requestWorkerVersion sets the version of the MachineDeployment.
func (h *hub) requestWorkerVersion(version string) {
	h.t.Helper()
	h.changeWorkers(func(deployment *clusterv1.MachineDeployment) { deployment.Spec.Template.Spec.Version = version })
}

func (h *hub) changeWorkers(change func(*clusterv1.MachineDeployment)) {
	h.t.Helper()
	deployment := &clusterv1.MachineDeployment{}
	h.get("workers", deployment)
	change(deployment)
	h.Expect(h.Update(h.t.Context(), deployment)).To(Succeed())
}

// worker creates a worker of the MachineDeployment that has a version, with a kubelet of another.
func (h *hub) worker(name, version, kubelet string, change func(*clusterv1.Machine)) {
	h.t.Helper()
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: lab, Name: name, UID: types.UID(name), Labels: map[string]string{clusterv1.ClusterNameLabel: "cluster1"},
		},
		Spec: clusterv1.MachineSpec{ClusterName: "cluster1", Version: version, Bootstrap: clusterv1.Bootstrap{
			ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: workers.ConfigKind, Name: name},
		}, FailureDomain: "rack1"},
	}
	m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: "set", UID: "set", Controller: ptr.To(true)}}
	m.Status.NodeRef.Name = "node-" + name
	if change != nil {
		change(m)
	}
	h.Expect(h.Create(h.t.Context(), m)).To(Succeed())
	h.Expect(h.Status().Update(h.t.Context(), m)).To(Succeed())
	h.workloads.facts.Nodes = append(h.workloads.facts.Nodes, workload.Node{Name: "node-" + name, KubeletVersion: kubelet})
}

func (h *hub) versionOf(name string) string {
	h.t.Helper()
	m := &clusterv1.Machine{}
	h.get(name, m)
	h.Expect(m.Spec.FailureDomain).To(Equal("rack1"), "no other field is written")
	return m.Spec.Version
}

// Only the annotation shows that Cluster API updates a Machine in place: the Machine has the new version from
// the beginning.
func TestPoolsAreReadWhileWorkersAreUpdatedInPlace(t *testing.T) {
	h := installedHub(t)
	h.workersOf("v1.32.7")
	h.worker("updating", "v1.32.7", "v1.32.6", func(m *clusterv1.Machine) {
		m.Annotations = map[string]string{clusterv1.UpdateInProgressAnnotation: ""}
	})
	h.settle()
	h.Expect(h.workloads.poolsRequired).To(BeTrue())
	m := &clusterv1.Machine{}
	h.get("updating", m)
	m.Annotations = nil
	h.Expect(h.Update(t.Context(), m)).To(Succeed())
	h.settle()
	h.Expect(h.workloads.poolsRequired).To(BeFalse())
}

func TestWorkersGetTheVersionOfTheirMachineDeployment(t *testing.T) {
	h := installedHub(t)
	h.workersOf("v1.32.6")
	h.worker("follows", "v1.32.6", "v1.32.7", nil)
	h.worker("hash", "v1.32.6", "v1.32.7+aba1e8d", nil)
	h.worker("newer", "v1.32.6", "v1.33.5", nil)
	h.worker("paused", "v1.32.6", "v1.32.6", nil)
	h.worker("unread", "v1.32.6", "", nil)
	h.worker("unversioned", "", "v1.32.7", nil)
	h.worker("foreign", "v1.32.6", "v1.32.7", func(m *clusterv1.Machine) { m.Spec.Bootstrap.ConfigRef.Kind = "KubeadmConfig" })
	h.worker("single", "v1.32.6", "v1.32.7", func(m *clusterv1.Machine) { m.OwnerReferences = nil })
	h.worker("installing", "v1.32.6", "v1.32.7", func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "" })
	h.worker("set", "v1.32.6", "v1.32.7", func(m *clusterv1.Machine) { m.OwnerReferences[0].UID = "alone" })
	h.worker("uncached", "v1.32.6", "v1.32.7", func(m *clusterv1.Machine) { m.OwnerReferences[0].UID = "unknown" })
	h.settle()
	h.Expect(h.versionOf("follows")).To(Equal("v1.32.6"), "its MachineDeployment would seem to be in an upgrade without end")

	h.requestWorkerVersion("v1.32.7")
	h.settle()
	h.Expect(h.workloads.poolsRequired).To(BeTrue())
	for name, version := range map[string]string{
		"follows":     "v1.32.7",
		"hash":        "v1.32.7",
		"newer":       "v1.32.7",
		"paused":      "v1.32.6",
		"unread":      "v1.32.6",
		"unversioned": "v1.32.7",
		"foreign":     "v1.32.6",
		"single":      "v1.32.6",
		"set":         "v1.32.6",
		"installing":  "v1.32.6",
		"uncached":    "v1.32.6",
	} {
		h.Expect(h.versionOf(name)).To(Equal(version), name)
	}
	writes := len(h.writes)
	h.settle()
	h.Expect(h.writes).To(HaveLen(writes))

	for i := range h.workloads.facts.Nodes {
		h.workloads.facts.Nodes[i].KubeletVersion = "v1.32.7"
	}
	h.settle()
	h.Expect([]string{h.versionOf("paused"), h.versionOf("unread")}).To(Equal([]string{"v1.32.7", "v1.32.7"}))
	h.Expect(h.workloads.poolsRequired).To(BeFalse())
}

// From 1.14 on Cluster API counts a worker as up to date only if its version is that of its kubelet, literally.
func TestWorkersWithoutVersionGetTheVersionOfTheirKubelets(t *testing.T) {
	h := installedHub(t)
	h.workersOf("")
	h.worker("new", "", "v1.32.6", nil)
	h.worker("hash", "v1.29.6", "v1.29.6+aba1e8d", nil)
	h.worker("unread", "v1.32.6", "", nil)
	h.worker("single", "", "v1.32.6", func(m *clusterv1.Machine) { m.OwnerReferences = nil })
	h.worker("uncached", "", "v1.32.6", func(m *clusterv1.Machine) { m.OwnerReferences[0].UID = "unknown" })
	h.settle()
	for name, version := range map[string]string{
		"new": "v1.32.6", "hash": "v1.29.6+aba1e8d", "unread": "v1.32.6", "single": "", "uncached": "",
	} {
		h.Expect(h.versionOf(name)).To(Equal(version), name)
	}
	writes := len(h.writes)
	h.settle()
	h.Expect(h.writes).To(HaveLen(writes))

	// A MachineSet controller with an outdated cache reverts the write, again and again.
	now, reverted := time.Now(), 0
	h.clock.now = func() time.Time { return now }
	for range 20 {
		m := &clusterv1.Machine{}
		h.get("new", m)
		if m.Spec.Version != "" {
			reverted++
			m.Spec.Version = ""
			h.Expect(h.Update(t.Context(), m)).To(Succeed())
		}
		h.settle()
		now = now.Add(time.Second)
	}
	h.Expect(reverted).To(BeNumerically("<=", 3), "the controllers do not fight without end")
	now = now.Add(time.Minute)
	h.settle()
	h.Expect(h.versionOf("new")).To(Equal("v1.32.6"), "it converges")
}

// The user lets this provider pause the pools of workers. A process that starts later resumes them.
func TestPausedPoolsAreResumed(t *testing.T) {
	h := installedHub(t)
	cp := h.controlPlane()
	cp.Spec.Upgrade.PauseWorkerPools = controlplanev1.PauseWorkerPoolsDuringChain
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	paused := workload.Pool{Name: "worker", Paused: true, Behind: true, PausedUntil: "v1.33.5", PausedSince: time.Now()}
	h.workloads.facts.Pools, h.workloads.facts.PoolsKnown = []workload.Pool{paused}, true
	h.workloads.facts.Upgrading = "4.20.8"
	h.settle()
	h.Expect(h.versions.resumed).To(BeEmpty(), "the upgrade is not complete")
	h.Expect(h.controlPlane().Status.PausedPools).To(ConsistOf("worker"))
	h.Expect(h.condition(controlplanev1.RollingOutCondition).Message).To(ContainSubstring("worker is paused by this provider since"))

	h.versions.requestError = errors.New("no answer")
	h.workloads.facts.Upgrading = ""
	_, err := h.r.Reconcile(t.Context(), h.request())
	h.Expect(err).To(MatchError(ContainSubstring("no answer")))
	h.versions.requestError = nil
	h.settle()
	h.Expect(h.versions.resumed).To(HaveLen(1), "the request is repeated after a time")
	h.step(clusterversion.InitialRequestDelay)
	h.settle()
	h.Expect(h.versions.resumed).To(ConsistOf("worker", "worker"))
	h.workloads.facts.Pools = nil
	h.settle()
	h.Expect(h.controlPlane().Status.PausedPools).To(BeEmpty())
}
