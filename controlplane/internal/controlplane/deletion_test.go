package controlplane

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

func TestDeletionInOrder(t *testing.T) {
	worker := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "worker-1", UID: "w", OwnerReferences: clusterOwner()},
		Spec:       clusterv1.MachineSpec{ClusterName: "cluster1"},
	}
	h := newHub(t, append(world(nil), worker)...)
	h.withTime()
	h.reconcile()
	h.Expect(h.Delete(t.Context(), h.controlPlane())).To(Succeed())

	h.reconcile()
	h.Expect(
		conditions.GetReason(h.controlPlane(), controlplanev1.DeletingCondition),
	).To(Equal(controlplanev1.WaitingForWorkersDeletionReason))
	h.Expect(h.machines()).To(HaveLen(4))

	h.Expect(h.Delete(t.Context(), worker)).To(Succeed())
	h.endDeferral() // another reason is written once it has lasted
	h.reconcile()
	h.Expect(
		conditions.GetReason(h.controlPlane(), controlplanev1.DeletingCondition),
	).To(Equal(controlplanev1.WaitingForMachinesDeletionReason))
	h.Expect(h.machines()).To(BeEmpty())
	h.get("c1", &hivev1.ClusterDeployment{})

	h.reconcile() // deletes the ClusterDeployment
	h.reconcile() // and the AgentClusterInstall, which no other controller deletes here
	h.reconcile()
	key := client.ObjectKey{Namespace: lab, Name: "c1"}
	for _, deleted := range []client.Object{
		&hivev1.ClusterDeployment{}, &hiveext.AgentClusterInstall{}, &controlplanev1.OpenshiftAssistedControlPlane{},
	} {
		h.Expect(apierrors.IsNotFound(h.Get(t.Context(), key, deleted))).To(BeTrue(), "%T", deleted)
	}
	imageSets := &hivev1.ClusterImageSetList{}
	h.Expect(h.List(t.Context(), imageSets)).To(Succeed())
	h.Expect(imageSets.Items).To(BeEmpty())
	_, err := h.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	h.Expect(err).NotTo(HaveOccurred())
}

func TestMoveDeletesNothing(t *testing.T) {
	h := newHub(t, world(nil)...)
	h.reconcile()
	cp := h.controlPlane()
	cp.Annotations = map[string]string{clusterctlv1.DeleteForMoveAnnotation: ""}
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	h.Expect(h.Delete(t.Context(), cp)).To(Succeed())
	h.r.writer.Recent = reconcile.NewRecentWrites(clock.RealClock{})
	h.reconcile()
	h.Expect(apierrors.IsNotFound(h.Get(t.Context(), client.ObjectKeyFromObject(cp), cp))).To(BeTrue())
	h.Expect(h.machines()).To(HaveLen(3))
	h.get("c1", &hivev1.ClusterDeployment{})
}

func TestUnansweredDeletionIsReported(t *testing.T) {
	h := newHub(t, world(nil)...)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.r.writer.Recent = reconcile.NewRecentWrites(h.clock)
	h.reconcile()
	deployment, _ := h.registration()
	deployment.Finalizers = []string{"clusterdeployments.agent-install.openshift.io/ai-deprovision"}
	h.Expect(h.Update(t.Context(), deployment)).To(Succeed())
	h.Expect(h.Delete(t.Context(), h.controlPlane())).To(Succeed())
	reason := func() string {
		now = now.Add(reconcile.DeferralPeriod)
		h.reconcile()
		now = now.Add(reconcile.DeferralPeriod)
		h.reconcile()
		return conditions.GetReason(h.controlPlane(), controlplanev1.DeletingCondition)
	}
	reason()
	h.Expect(reason()).To(Equal(controlplanev1.WaitingForInstallationDeletionReason))
	now = now.Add(2 * assisted.ResponseTimeout)
	h.Expect(reason()).To(Equal(controlplanev1.AssistedServiceNotRespondingReason))
}

func TestDeletionReportsNothingAboutTheInstallation(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.Expect(h.Delete(t.Context(), h.controlPlane())).To(Succeed())
	recorder := record.NewFakeRecorder(100)
	h.recorder.EventRecorder = recorder
	for _, state := range []string{"installing", "cancelled"} {
		h.setState(state, hiveext.ClusterInstallationInProgressReason, 10)
		worker := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "worker-" + state}, Spec: clusterv1.MachineSpec{ClusterName: "cluster1"},
		}
		h.Expect(h.Create(t.Context(), worker)).To(Succeed())
		h.reconcile()
	}
	h.Expect(recorder.Events).To(BeEmpty())
}

// Cluster API core deletes the workers of a Cluster first. With fewer workers to wait for, the installation
// would begin although the user gave it up.
func TestDeletedClusterIsNotInstalled(t *testing.T) {
	deployment := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "w", Finalizers: []string{clusterv1.MachineDeploymentFinalizer}},
		Spec:       clusterv1.MachineDeploymentSpec{ClusterName: "cluster1", Replicas: ptr.To[int32](2)},
	}
	deployment.Labels = map[string]string{clusterv1.ClusterNameLabel: "cluster1"}
	deployment.Spec.Template.Spec.Bootstrap.ConfigRef.Kind = workers.ConfigTemplateKind
	h := newHub(t, append(world(nil), deployment)...).withTime()
	h.reconcile()
	_, install := h.registration()
	h.Expect(install.Spec.ProvisionRequirements.WorkerAgents).To(Equal(2))
	h.deleteCluster()
	h.Expect(h.Delete(t.Context(), deployment)).To(Succeed())
	deleted := h.machines()[0]
	h.Expect(h.Delete(t.Context(), &deleted)).To(Succeed())
	h.endDeferral()
	h.reconcile()
	_, install = h.registration()
	h.Expect(install.Spec.ProvisionRequirements.WorkerAgents).To(Equal(2), "assisted-service still waits for the workers")
	h.Expect(install.Spec.HoldInstallation).To(BeTrue(), "even if all hosts are registered")
	h.Expect(h.names()).NotTo(ContainElement(deleted.Name), "no Machine is created")
	h.Expect(
		conditions.GetReason(h.controlPlane(), controlplanev1.InstalledCondition),
	).To(Equal(controlplanev1.WaitingForWorkersDeletionReason))
}

// assisted-service starts the installation automatically when the last host is approved. The deletion may be
// waiting for another dependency by then.
func TestDeletedControlPlaneIsNotInstalled(t *testing.T) {
	worker := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "worker-1", UID: "w"}, Spec: clusterv1.MachineSpec{ClusterName: "cluster1"},
	}
	h := newHub(t, append(world(nil), worker)...).withTime()
	h.reconcile()
	h.Expect(h.Delete(t.Context(), h.controlPlane())).To(Succeed())
	h.writes = nil
	for range 3 {
		h.reconcile()
	}
	_, install := h.registration()
	h.Expect(install.Spec.HoldInstallation).To(BeTrue())
	h.Expect(install.Spec.ProvisionRequirements.ControlPlaneAgents).To(Equal(3), "all other fields stay")
	h.Expect(slices.DeleteFunc(h.writes, func(w string) bool { return w != "hold" })).To(HaveLen(1), "the hold is written once")
	for i := range 3 {
		h.Expect(h.Create(t.Context(), &aiv1beta1.Agent{
			ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: fmt.Sprintf("agent-%d", i)},
			Spec:       aiv1beta1.AgentSpec{ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: lab, Name: "c1"}},
		})).To(Succeed())
	}
	h.setState("ready", hiveext.ClusterInstallationOnHoldReason, 0)
	h.endDeferral()
	h.reconcile()
	h.Expect(*conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition)).To(And(
		HaveField("Reason", controlplanev1.InstallationOnHoldReason),
		HaveField("Message", "the cluster is being deleted: no installation is begun")))
}

func TestHoldOfDeletedAgentClusterInstallIsNoError(t *testing.T) {
	resource := schema.GroupResource{Group: hiveext.Group, Resource: "agentclusterinstalls"}
	for situation, err := range map[string]error{
		"its UID does not exist": apierrors.NewConflict(resource, "c1", errors.New("uid mismatch")),
		"it does not exist":      apierrors.NewNotFound(resource, "c1"),
	} {
		t.Run(situation, func(t *testing.T) {
			h := newHub(t, world(nil)...).withTime()
			h.reconcile()
			h.deleteCluster()
			h.holdFails = err
			h.writes = nil
			h.Expect(h.reconcile().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", reconcile.CacheLag)))
			h.Expect(h.writes).To(ContainElement("hold"))
		})
	}
}

func TestRunningInstallationOfDeletedClusterIsNotHeld(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.setState("installing", hiveext.ClusterInstallationInProgressReason, 10)
	h.deleteCluster()
	h.reconcile()
	h.Expect(h.Delete(t.Context(), h.controlPlane())).To(Succeed())
	h.reconcile()
	_, install := h.registration()
	h.Expect(install.Spec.HoldInstallation).To(BeFalse(), "assisted-service would refuse it")
}

func TestRefusedHoldIsReported(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.deleteCluster()
	h.holdFails = apierrors.NewBadRequest("Attempted to change AgentClusterInstall.Spec which is immutable after install started")
	h.endDeferral()
	h.Expect(h.reconcile().RequeueAfter).To(BeNumerically("<=", reconcile.RefusedDelay))
	h.Expect(
		conditions.GetMessage(h.controlPlane(), controlplanev1.InstalledCondition),
	).To(ContainSubstring("immutable after install started"))
	h.holdFails = nil
	h.reconcile()
	_, install := h.registration()
	h.Expect(install.Spec.HoldInstallation).To(BeTrue())
}

// All holds except that of the registration have one writer. The end of one reason does not end another.
func TestHoldEndsWithItsOwnReason(t *testing.T) {
	theirs := &aiv1beta1.Agent{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "theirs"},
		Spec:       aiv1beta1.AgentSpec{ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: lab, Name: "c1"}},
	}
	for reason, hold := range map[string]func(h *hub){
		"the Cluster is being deleted": (*hub).deleteCluster,
		"the control plane is being deleted": func(h *hub) {
			h.Expect(h.Create(h.t.Context(), &clusterv1.Machine{
				ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "worker-1", UID: "w"}, Spec: clusterv1.MachineSpec{ClusterName: "cluster1"},
			})).To(Succeed())
			h.Expect(h.Delete(h.t.Context(), h.controlPlane())).To(Succeed())
		},
		"the spec states it": func(h *hub) {
			cp := h.controlPlane()
			cp.Spec.Config.HoldInstallation = ptr.To(true)
			h.Expect(h.Update(h.t.Context(), cp)).To(Succeed())
		},
	} {
		t.Run(reason, func(t *testing.T) {
			h := newHub(t, world(nil)...).withTime()
			h.reconcile()
			cp := h.controlPlane()
			refs := cp.Spec.Config.ManifestsConfigMapRefs
			cp.Spec.Config.ManifestsConfigMapRefs = []corev1.LocalObjectReference{{Name: "missing"}} // the registration is not reached
			h.Expect(h.Update(t.Context(), cp)).To(Succeed())
			foreign := theirs.DeepCopy()
			h.Expect(h.Create(t.Context(), foreign)).To(Succeed())
			h.reconcile()
			_, install := h.registration()
			h.Expect(install.Spec.HoldInstallation).To(BeTrue())
			hold(h)
			h.reconcile()
			h.Expect(h.Delete(t.Context(), foreign)).To(Succeed())
			if cp = h.controlPlane(); cp.DeletionTimestamp.IsZero() {
				cp.Spec.Config.ManifestsConfigMapRefs = refs
				h.Expect(h.Update(t.Context(), cp)).To(Succeed())
			}
			for range 3 {
				h.reconcile()
			}
			_, install = h.registration()
			h.Expect(install.Spec.HoldInstallation).To(BeTrue())
		})
	}
}

// The admission webhook of assisted-service may be unavailable, together with assisted-service.
func TestRejectedBlockOfInstallationDoesNotBlockTheDeletion(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.holdFails = apierrors.NewInternalError(errors.New("failed calling webhook"))
	h.Expect(h.Delete(t.Context(), h.controlPlane())).To(Succeed())
	_, err := h.r.Reconcile(t.Context(), h.request())
	h.Expect(err).To(MatchError(ContainSubstring("cannot change spec.holdInstallation of AgentClusterInstall c1")))
	h.Expect(h.machines()).To(BeEmpty())
}

// A user who deletes the Machines of a deleted Cluster to speed it up gets no new Machines.
func TestDeletedInstalledClusterGetsNoMachine(t *testing.T) {
	h := newInstalledHub(t)
	h.deleteCluster()
	deleted := h.machines()[0]
	deleted.Finalizers = nil
	h.Expect(h.Update(t.Context(), &deleted)).To(Succeed())
	h.Expect(h.Delete(t.Context(), &deleted)).To(Succeed())
	for range 3 {
		h.endDeferral()
		h.reconcile()
	}
	h.Expect(h.names()).To(HaveLen(2))
}
