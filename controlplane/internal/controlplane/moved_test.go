package controlplane

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/move"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

func TestNoMoveBeforeTheClusterIsInstalled(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(clusterctlv1.BlockMoveAnnotation, move.Installing))
	h.setState("finalizing", hiveext.ClusterInstallationInProgressReason, 90)
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).To(HaveKey(clusterctlv1.BlockMoveAnnotation))
	h.install()
	h.Expect(h.controlPlane().Annotations).NotTo(HaveKey(clusterctlv1.BlockMoveAnnotation))
}

func TestUsersOwnMoveBlockStays(t *testing.T) {
	h := newHub(t, world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Annotations = map[string]string{clusterctlv1.BlockMoveAnnotation: ""}
	})...).withTime()
	h.install()
	h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(clusterctlv1.BlockMoveAnnotation, ""))
}

// annotate sets an annotation of the control plane.
func (h *hub) annotate(key, value string) {
	h.t.Helper()
	cp := h.controlPlane()
	metav1.SetMetaDataAnnotation(&cp.ObjectMeta, key, value)
	h.Expect(h.Update(h.t.Context(), cp)).To(Succeed())
}

// clusterctl creates Machines on the other hub without their deletion timestamps.
func TestNoMoveWhileAHostLeavesTheCluster(t *testing.T) {
	h := newInstalledHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	going := h.deleteMachine(0)
	h.etcds.Members[2].Problem = "does not answer"
	h.reconcile()
	h.Expect(h.held()).To(ContainElement(going))
	h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(clusterctlv1.BlockMoveAnnotation, move.RemovingHosts))
	version := h.controlPlane().ResourceVersion
	h.reconcile()
	h.Expect(h.controlPlane().ResourceVersion).To(Equal(version), "once")

	h.etcds.Members[2].Problem = ""
	now = now.Add(etcdgate.Interval)
	h.reconcile()
	h.Expect(h.held()).NotTo(ContainElement(going))
	h.finishMachine(going)
	h.etcds.observing = errors.New("it does not answer")
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).To(
		HaveKeyWithValue(clusterctlv1.BlockMoveAnnotation, move.RemovingHosts), "the host is not cleaned up yet",
	)
	h.etcds.observing = nil
	now = now.Add(etcdgate.Interval)
	h.reconcile()
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).NotTo(HaveKey(clusterctlv1.BlockMoveAnnotation))
}

// A hub that does not update Machines in place replaces those that are not up to date.
func TestNoMoveWhileWorkersRollOut(t *testing.T) {
	h := installedHub(t)
	h.workersOf("v1.32.6")
	h.worker("first", "v1.32.6", "v1.32.7", nil)
	h.worker("last", "v1.32.6", "v1.32.6", nil)
	blocked := func() string {
		h.settle()
		return h.controlPlane().Annotations[clusterctlv1.BlockMoveAnnotation]
	}
	h.Expect(blocked()).To(BeEmpty())
	h.requestWorkerVersion("v1.32.7")
	h.Expect(blocked()).To(Equal(move.UpdatingWorkers), "one lags behind")
	writes := len(h.writes)
	h.settle()
	h.Expect(h.writes).To(HaveLen(writes), "once")

	h.changeWorkers(func(d *clusterv1.MachineDeployment) {
		d.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
	})
	h.Expect(blocked()).To(BeEmpty(), "another hub would not replace it either")
	h.changeWorkers(func(d *clusterv1.MachineDeployment) {
		d.Spec.Rollout.Strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
	})
	h.Expect(blocked()).To(Equal(move.UpdatingWorkers))

	h.annotate(controlplanev1.ReleasedHostsAnnotation, recordOf(h.machines()[0].Name))
	h.etcds.observing = errors.New("it does not answer")
	h.Expect(blocked()).To(Equal(move.RemovingHosts))
	cp := h.controlPlane()
	delete(cp.Annotations, controlplanev1.ReleasedHostsAnnotation)
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	h.Expect(blocked()).To(Equal(move.UpdatingWorkers))

	// Cluster API updates the last worker in place: it has the new version from the beginning.
	m := &clusterv1.Machine{}
	h.get("last", m)
	m.Spec.Version, m.Annotations = "v1.32.7", map[string]string{clusterv1.UpdateInProgressAnnotation: ""}
	h.Expect(h.Update(t.Context(), m)).To(Succeed())
	h.Expect(blocked()).To(Equal(move.UpdatingWorkers))
	h.get("last", m)
	m.Spec.Bootstrap.ConfigRef.Kind = "KubeadmConfig"
	h.Expect(h.Update(t.Context(), m)).To(Succeed())
	h.Expect(blocked()).To(BeEmpty(), "the worker is foreign")
	h.get("last", m)
	m.Spec.Bootstrap.ConfigRef.Kind = workers.ConfigKind
	h.Expect(h.Update(t.Context(), m)).To(Succeed())
	h.Expect(blocked()).To(Equal(move.UpdatingWorkers))
	h.get("last", m)
	m.Annotations = nil
	h.Expect(h.Update(t.Context(), m)).To(Succeed())
	h.Expect(blocked()).To(BeEmpty())
}

// The Machine of a single node is never released. It stays on the hub to which the cluster is moved.
func TestSingleNodeWhoseMachineIsBeingDeletedMayBeMoved(t *testing.T) {
	for situation, tc := range map[string]struct {
		change  func(h *hub, going string)
		blocked bool
	}{
		"it has our hook": {func(*hub, string) {}, false},
		"its hook was removed": {func(h *hub, going string) {
			m := &clusterv1.Machine{}
			h.get(going, m)
			m.Annotations = nil
			h.Expect(h.Update(h.t.Context(), m)).To(Succeed())
		}, true},
		"its host was to be released": {func(h *hub, going string) { h.annotate(controlplanev1.ReleasedHostsAnnotation, recordOf(going)) }, true},
		"other hosts are expected": {func(h *hub, _ string) {
			cp := h.controlPlane()
			cp.Spec.Replicas = ptr.To[int32](3)
			h.Expect(h.Update(h.t.Context(), cp)).To(Succeed())
		}, true},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newInstalledHub(t)
			machines := h.machines()
			for i := range machines[1:] {
				h.Expect(h.Delete(t.Context(), &machines[i+1])).To(Succeed())
			}
			h.etcds.Members = h.etcds.Members[:1]
			cp := h.controlPlane()
			cp.Spec.Replicas = ptr.To[int32](1)
			h.Expect(h.Update(t.Context(), cp)).To(Succeed())
			h.annotate(clusterctlv1.BlockMoveAnnotation, move.RemovingHosts) // by an earlier version
			going := h.deleteMachine(0)
			tc.change(h, going)
			h.reconcile()
			_, blocked := h.controlPlane().Annotations[clusterctlv1.BlockMoveAnnotation]
			h.Expect(blocked).To(Equal(tc.blocked))
			if !tc.blocked {
				h.Expect(h.held()).To(ContainElement(going))
				h.Expect(conditions.GetReason(h.controlPlane(), controlplanev1.HostsReleasingCondition)).To(Equal(controlplanev1.LastEtcdMemberReason))
			}
		})
	}
}

// If a single node is released nevertheless, one write records the release and blocks the move.
func TestClusterWithReleasedHostIsNotMoved(t *testing.T) {
	h := newInstalledHub(t)
	cp := h.controlPlane()
	delete(cp.Annotations, clusterctlv1.BlockMoveAnnotation)
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	s, err := h.r.gather(t.Context(), cp)
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(h.r.removal.Record(t.Context(), s, []removal.ReleasedHost{{Node: "n0"}})).To(Succeed())
	h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(clusterctlv1.BlockMoveAnnotation, move.RemovingHosts))
}

func TestUsersOwnMoveBlockStaysWhileAHostLeaves(t *testing.T) {
	h := newInstalledHub(t)
	h.annotate(clusterctlv1.BlockMoveAnnotation, "mine")
	going := h.deleteMachine(0)
	h.reconcile()
	h.finishMachine(going)
	h.reconcile()
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(clusterctlv1.BlockMoveAnnotation, "mine"))
}

func TestTemplateIsOwnedByTheClustersThatUseIt(t *testing.T) {
	other := metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "other", UID: "other-uid"}
	objects := world(nil)
	for _, obj := range objects {
		if obj.GetName() == "hosts" {
			obj.SetOwnerReferences([]metav1.OwnerReference{other})
		}
	}
	h := newHub(t, objects...)
	h.reconcile()
	template := infraTemplate()
	h.get("hosts", template)
	h.Expect(template.GetOwnerReferences()).To(ConsistOf(other, metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "cluster1", UID: "cluster-uid",
	}))
}

// The hub to which a cluster was moved has no objects of assisted-service. They are not created while the
// cluster does not answer.
func TestMovedClusterIsReconciled(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	before := h.names()
	h.forget()
	h.workloads.facts = workload.State{}
	m := &h.machines()[0]
	m.OwnerReferences = nil
	h.Expect(h.Update(t.Context(), m)).To(Succeed())
	cp := h.controlPlane()
	cp.Spec.MachineTemplate.ObjectMeta.Annotations = map[string]string{"moved": "yes"}
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())

	h.reconcile()
	h.reconcile()
	h.Expect(h.names()).To(Equal(before), "no additional Machine for the one without owner")
	for _, m := range h.machines() {
		h.Expect(m.Annotations).To(HaveKeyWithValue("moved", "yes"))
		h.Expect(metav1.IsControlledBy(&m, cp)).To(BeTrue())
	}
	h.expectRegistration(controlplanev1.WaitingForImportReason, "API server answers")
	h.Expect(h.controlPlane().Annotations).NotTo(HaveKey(clusterctlv1.BlockMoveAnnotation))
	err := h.Get(t.Context(), client.ObjectKey{Namespace: lab, Name: "c1"}, &hivev1.ClusterDeployment{})
	h.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "an installed cluster is not registered again")
}

// Only its Machines prove that the cluster is installed: the status is not moved, and the Secret proves
// nothing.
func TestMovedClusterWithUsersKubeconfigIsReconciled(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	for _, m := range h.machines() {
		m.Spec.ProviderID = "metal3://" + m.Name
		m.Spec.InfrastructureRef.Kind = metal3.MachineKind
		h.Expect(h.Update(t.Context(), &m)).To(Succeed())
	}
	own := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "cluster1-kubeconfig"}, Data: map[string][]byte{"value": kubeconfigOf("user")},
	}
	h.Expect(h.Create(t.Context(), own)).To(Succeed())
	h.forget()

	h.reconcile()
	err := h.Get(t.Context(), client.ObjectKey{Namespace: lab, Name: "c1"}, &hivev1.ClusterDeployment{})
	h.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "an installed cluster is not registered again")
	h.Expect(conditions.IsTrue(h.controlPlane(), controlplanev1.InstalledCondition)).To(BeTrue())
}

// forget removes the objects that are not moved: the registration in assisted-service, and the status.
func (h *hub) forget() {
	h.t.Helper()
	for _, unmoved := range []client.Object{&hiveext.AgentClusterInstall{}, &hivev1.ClusterDeployment{}} {
		unmoved.SetNamespace(lab)
		unmoved.SetName("c1")
		h.Expect(h.Delete(h.t.Context(), unmoved)).To(Succeed())
	}
	cp := h.controlPlane()
	cp.Status = controlplanev1.OpenshiftAssistedControlPlaneStatus{}
	h.Expect(h.Status().Update(h.t.Context(), cp)).To(Succeed())
}

func (h *hub) names() []string {
	h.t.Helper()
	var names []string
	for _, m := range h.machines() {
		names = append(names, m.Name)
	}
	return names
}

func TestPauseAppliesWithoutOwnerReference(t *testing.T) {
	objects := world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.OwnerReferences = nil
		cp.Labels = map[string]string{clusterv1.ClusterNameLabel: "cluster1"}
	})
	h := newHub(t, altered(func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) })(objects)...)
	h.reconcile()
	h.Expect(h.writes).To(ConsistOf("patch status c1"))
	h.Expect(h.controlPlane().Status.Conditions).To(HaveLen(1))
	h.Expect(conditions.IsTrue(h.controlPlane(), clusterv1.PausedCondition)).To(BeTrue())
}

// Cluster API refuses Machines with taints while its feature gate MachineTaintPropagation is off.
func TestRefusedMachinesAreReportedAndTriedAtLimitedRate(t *testing.T) {
	refuse := false
	h := newHub(t, world(nil)...).withTime()
	h.r.writer.Applier = apply.New(interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if kind, ok := obj.(interface{ GetKind() string }); ok && refuse && kind.GetKind() == "Machine" {
				return apierrors.NewInvalid(clusterv1.GroupVersion.WithKind("Machine").GroupKind(), "m", nil)
			}
			return c.Apply(ctx, obj, opts...)
		},
	}), writer.FieldOwner)
	refuse = true
	h.reconcile()
	created := conditions.Get(h.controlPlane(), controlplanev1.MachinesCreatedCondition)
	h.Expect(created.Reason).To(Equal(controlplanev1.InvalidConfigurationReason))
	h.Expect(h.condition(controlplanev1.InstalledCondition).Message).To(ContainSubstring("correct machineTemplate"))

	refuse = false
	h.install()
	refuse = true
	cp := h.controlPlane()
	cp.Spec.MachineTemplate.Spec.Taints = []clusterv1.MachineTaint{
		{Key: "a", Effect: "NoSchedule", Propagation: clusterv1.MachineTaintPropagationAlways},
	}
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	h.reconcile()
	upToDate := conditions.Get(h.controlPlane(), controlplanev1.MachinesUpToDateCondition)
	h.Expect(upToDate.Status).To(Equal(metav1.ConditionFalse))
	h.Expect(upToDate.Reason).To(Equal(controlplanev1.InvalidConfigurationReason))
}
