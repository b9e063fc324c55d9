package controlplane

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

const keptBy = "test.example.com/keep"

// newFailedHub returns a hub with a cluster of three masters and a worker. Its installation failed before its
// API answered. Deleted objects stay until their finalizer is removed.
func newFailedHub(t *testing.T) *hub {
	t.Helper()
	worker := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "worker"}, Spec: clusterv1.MachineSpec{ClusterName: "cluster1"},
	}
	worker.Spec.Bootstrap.ConfigRef.Kind = workers.ConfigKind
	worker.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Name: "set", UID: "set", Controller: ptr.To(true)},
	}
	others := worker.DeepCopy()
	others.Name, others.Spec.Bootstrap.ConfigRef.Kind = "others", "KubeadmConfig"
	h := newHub(t, append(world(nil), worker, others)...).withTime()
	h.reconcile()
	h.setState("installing", hiveext.ClusterInstallationInProgressReason, 30)
	h.giveKubeconfig("assisted-service")
	h.reconcile()
	h.setState("error", hiveext.ClusterInstallationFailedReason, 30)
	h.reconcile()
	deployment, install := h.registration()
	kept := []client.Object{deployment, install, h.published()}
	for _, m := range h.machines() {
		kept = append(kept, &m)
	}
	for i, obj := range kept {
		obj.SetUID(types.UID(fmt.Sprintf("given-up-%d", i)))
		obj.SetFinalizers([]string{keptBy})
		h.Expect(h.Update(t.Context(), obj)).To(Succeed())
	}
	h.silenceAPI()
	return h
}

// silenceAPI makes no server answer at the address in the published kubeconfig.
func (h *hub) silenceAPI() {
	h.t.Helper()
	h.workloads.facts.Failure = &workload.Failure{
		Kind: workload.Unreachable, Message: "it is silent", Silent: true, KubeconfigVersion: h.published().ResourceVersion,
	}
}

// requestRetry sets the annotation.
func (h *hub) requestRetry(value string) {
	h.t.Helper()
	cp := h.controlPlane()
	if cp.Annotations == nil {
		cp.Annotations = map[string]string{}
	}
	cp.Annotations[controlplanev1.RetryInstallationAnnotation] = value
	h.Expect(h.Update(h.t.Context(), cp)).To(Succeed())
}

// isBeingDeleted reports whether an object is being deleted.
func (h *hub) isBeingDeleted(name string, into client.Object) bool {
	h.t.Helper()
	h.get(name, into)
	return !into.GetDeletionTimestamp().IsZero()
}

// finishDeletion removes the finalizers of an object that is being deleted.
func (h *hub) finishDeletion(name string, into client.Object) {
	h.t.Helper()
	h.Expect(h.isBeingDeleted(name, into)).To(BeTrue(), "%T %s", into, name)
	into.SetFinalizers(nil)
	h.Expect(h.Update(h.t.Context(), into)).To(Succeed())
	h.Expect(h.Get(h.t.Context(), client.ObjectKeyFromObject(into), into)).To(MatchError(apierrors.IsNotFound, "gone"))
}

// collectKubeconfig deletes the published kubeconfig as the garbage collector does: none of its owners exists.
func (h *hub) collectKubeconfig() {
	h.t.Helper()
	garbage := h.published()
	h.Expect(garbage.DeletionTimestamp).To(BeZero(), "no manager has the right to delete Secrets")
	h.Expect(garbage.OwnerReferences).To(HaveLen(1))
	owner := garbage.OwnerReferences[0]
	h.Expect(owner.Kind).To(Equal("ClusterDeployment"))
	deployment := &hivev1.ClusterDeployment{}
	err := h.Get(h.t.Context(), client.ObjectKey{Namespace: lab, Name: owner.Name}, deployment)
	h.Expect(apierrors.IsNotFound(err) || deployment.UID != owner.UID).To(BeTrue(), "the Secret is garbage")
	writes := len(h.writes)
	h.reconcile()
	h.Expect(h.writes[writes:]).NotTo(ContainElement(ContainSubstring("kubeconfig")), "once")
	h.Expect(h.Delete(h.t.Context(), garbage)).To(Succeed())
	h.finishDeletion(garbage.Name, garbage)
}

func (h *hub) installedCondition() *metav1.Condition {
	h.t.Helper()
	h.endDeferral()
	h.reconcile()
	return conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition)
}

func TestFailedInstallationIsGivenUpInOrderAndStartedAgain(t *testing.T) {
	h := newFailedHub(t)
	h.requestRetry("1")
	givenUp := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := h.clock.now
	h.clock.now = func() time.Time { return givenUp }
	h.reconcile()
	h.clock.now = clock
	for _, m := range h.machines() {
		h.Expect(m.DeletionTimestamp).To(BeZero(), "the record precedes each deletion")
	}
	h.Expect(h.controlPlane().Annotations).To(
		HaveKeyWithValue(
			controlplanev1.RetriedInstallationAnnotation,
			And(ContainSubstring("given-up-0"), ContainSubstring("given-up-7"), Not(ContainSubstring("given-up-6"))),
		),
		"foreign Machines are not given up",
	)

	h.reconcile()
	deployment, install := h.registration()
	h.Expect(deployment.DeletionTimestamp).To(BeZero(), "the hosts are deleted first")
	h.Expect(install.Annotations).To(HaveKey(bootstrapv1.InstallationGivenUpAnnotation))
	h.Expect(*h.installedCondition()).To(
		And(HaveField("Reason", controlplanev1.RetryingInstallationReason), HaveField("Message", ContainSubstring("Machines c1-"))),
	)
	again := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "worker-again", UID: "again", OwnerReferences: clusterOwner()},
		Spec:       clusterv1.MachineSpec{ClusterName: "cluster1"},
	}
	again.Spec.Bootstrap.ConfigRef.Kind = workers.ConfigKind
	h.Expect(h.Create(t.Context(), again)).To(Succeed())
	for _, m := range h.machines() {
		if m.Name != "others" && m.Name != again.Name {
			h.finishDeletion(m.Name, &m)
			h.reconcile()
		}
	}
	h.Expect(h.isBeingDeleted("others", &clusterv1.Machine{})).To(BeFalse(), "the Machine is foreign")
	h.Expect(h.isBeingDeleted("worker-again", again)).To(BeFalse(), "the Machine was created meanwhile")
	h.Expect(h.machines()).To(HaveLen(2), "no Machine is created before all objects are deleted")
	h.finishDeletion("c1", &hivev1.ClusterDeployment{})
	h.reconcile()
	h.finishDeletion("c1", &hiveext.AgentClusterInstall{})
	h.reconcile()
	h.silenceAPI()
	h.reconcile()
	h.collectKubeconfig()

	h.reconcile()
	h.Expect(h.controlPlane().Status.Installation.Phase).To(Equal(controlplanev1.InstallationPending))
	h.Expect(h.controlPlane().Annotations).To(
		HaveKeyWithValue(controlplanev1.RetriedInstallationAnnotation, ContainSubstring("givenUp")),
		"a manager that ends here must not find the failed cluster again",
	)
	for range 3 {
		h.reconcile()
	}
	cp := h.controlPlane()
	h.Expect(cp.Annotations).To(
		HaveKeyWithValue(controlplanev1.RetriedInstallationAnnotation, `{"requested":"1","since":"2030-01-02T03:04:05Z"}`),
	)
	h.Expect(cp.Status.Installation.Phase).To(Equal(controlplanev1.InstallationPending))
	h.Expect(cp.Status.Installation.AttemptTime.UTC()).To(Equal(givenUp))
	deployment, install = h.registration()
	h.Expect([]types.UID{deployment.UID, install.UID}).To(
		HaveEach(BeEmpty()), "they were created again, with the empty UID of a fake API server",
	)
	h.Expect(install.Annotations).NotTo(HaveKey(bootstrapv1.InstallationGivenUpAnnotation))
	h.Expect(install.Spec.ClusterMetadata).To(BeNil())
	h.Expect(h.machines()).To(HaveLen(5))
	h.setState("error", hiveext.ClusterInstallationFailedReason, 30)
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).To(
		HaveKeyWithValue(controlplanev1.RetriedInstallationAnnotation, ContainSubstring(`{"requested":"1",`)), "once for each value",
	)
}

// On an OpenShift hub without openshift-hub.yaml the API server refuses to make the garbage collector delete
// the kubeconfig.
func TestKubeconfigThatCannotBeGivenUpIsReported(t *testing.T) {
	h := newFailedHub(t)
	h.undeletable = kubetest.Undeletable{"Secret"}
	h.requestRetry("1")
	h.reconcile()
	h.reconcile()
	h.finishDeletionOfInstallation()
	h.reconcile()
	h.silenceAPI()
	h.Expect(h.reconcile().RequeueAfter).NotTo(BeZero(), "no event reports that the right was granted")
	h.Expect(*h.installedCondition()).To(And(HaveField("Reason", controlplanev1.RetryingInstallationReason), HaveField("Message", And(
		ContainSubstring("Secret cluster1-kubeconfig of the failed installation is not deleted yet"),
		ContainSubstring("Apply openshift-hub.yaml"),
		ContainSubstring("no server is wiped")))))
	h.undeletable = nil
	h.clock.now = func() time.Time { return time.Now().Add(time.Hour) }
	h.silenceAPI()
	h.reconcile()
	h.collectKubeconfig()
}

func TestFailedInstallationIsNotRetriedIfItMayRun(t *testing.T) {
	join := func(h *hub, name string) {
		m := &clusterv1.Machine{}
		h.get(name, m)
		m.Status.NodeRef.Name = name
		h.Expect(h.Status().Update(h.t.Context(), m)).To(Succeed())
	}
	for because, bring := range map[string]func(h *hub){
		"assisted-service does not report the failure now": func(h *hub) { h.setState("", hiveext.ClusterInstallationNotStartedReason, 0) },
		"the API of the cluster answers, or did":           func(h *hub) { h.workloads.facts = workload.State{Connected: true} },
		"not sure that the cluster does not run":           func(h *hub) { h.workloads.facts.Failure.Silent = false },
		"whether the API of the cluster answers":           func(h *hub) { h.workloads.facts.Failure.KubeconfigVersion = "former" },
		"does not report the failure now": func(h *hub) { // although the failure was reported before: its database is unavailable
			h.setState("", hiveext.ClusterInstallationFailedReason, 0)
		},
		"has, or had, a Node":                                func(h *hub) { join(h, h.machines()[0].Name) },
		"Machine worker has, or had, a Node":                 func(h *hub) { join(h, "worker") },
		"not known yet whether the API of the cluster answe": func(h *hub) { h.workloads.facts.Failure = nil },
		"no controller would create Machine worker again": func(h *hub) {
			m := &clusterv1.Machine{}
			h.get("worker", m)
			m.OwnerReferences = nil
			h.Expect(h.Update(h.t.Context(), m)).To(Succeed())
		},
		"host master has joined the cluster": func(h *hub) {
			agent := &aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "a"}, Spec: aiv1beta1.AgentSpec{
				Hostname: "master", ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: lab, Name: "c1"},
			}}
			agent.Status.Progress.CurrentStage = "Joined"
			h.Expect(h.Create(h.t.Context(), agent)).To(Succeed())
		},
	} {
		t.Run(because, func(t *testing.T) {
			h := newFailedHub(t)
			bring(h)
			h.requestRetry("1")
			h.reconcile()
			h.Expect(h.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.RetriedInstallationAnnotation))
			h.Expect(h.installedCondition().Message).To(And(ContainSubstring("not retried"), ContainSubstring(because)))
			for _, m := range h.machines() {
				h.Expect(m.DeletionTimestamp).To(BeZero())
			}
		})
	}
}

// Otherwise the hosts would be wiped, and no registration would be left, for a configuration that is refused.
func TestRefusedAttemptDeletesNothing(t *testing.T) {
	for situation, tc := range map[string]struct {
		refused error
		failing string
		change  func(*controlplanev1.OpenshiftAssistedControlPlaneSpec)
		message string
	}{
		"AgentClusterInstall by its schema": {
			refused: undeclared("AgentClusterInstall", "spec.some"), failing: `"imageSetRef"`, message: "AgentClusterInstall c1 was refused",
		},
		"ClusterDeployment by a webhook": {
			refused: apierrors.NewForbidden(hivev1.Resource("clusterdeployments"), "c1", errors.New(`admission webhook "c" denied the request: no`)),
			failing: `"kind":"ClusterDeployment"`, message: "denied the request",
		},
		"the release is not supported": {
			change:  func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.DistributionVersion = "4.2.0" },
			message: "4.2",
		},
		"an override is no JSON": {
			change:  func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Config.InstallConfigOverride = "{" },
			message: "correct config.installConfigOverride",
		},
		"a ConfigMap is missing": {
			change: func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
				s.Config.ManifestsConfigMapRefs = []corev1.LocalObjectReference{{Name: "missing"}}
			},
			message: "ConfigMap missing does not exist",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newFailedHub(t)
			before := h.controlPlane().Spec
			if tc.change != nil {
				h.alter(tc.change)
			}
			h.applyFails, h.failing = tc.refused, tc.failing
			h.requestRetry("1")
			if result := h.reconcile(); tc.refused != nil {
				h.Expect(result.RequeueAfter).To(
					And(BeNumerically(">", 0), BeNumerically("<=", reconcile.RefusedDelay)), "a webhook may depend on unwatched state",
				)
			}
			h.Expect(*h.installedCondition()).To(And(
				HaveField("Reason", controlplanev1.InstallationFailedReason),
				HaveField("Message", And(ContainSubstring("the installation is not retried"), ContainSubstring(tc.message)))))
			h.expectNoDeletion()
			h.Expect(h.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.RetriedInstallationAnnotation))
			deployment, install := h.registration()
			h.Expect([]*metav1.Time{deployment.DeletionTimestamp, install.DeletionTimestamp}).To(HaveEach(BeNil()))

			h.applyFails = nil
			h.step(reconcile.RefusedDelay)
			h.alter(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { *s = before })
			h.reconcile()
			h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(controlplanev1.RetriedInstallationAnnotation, ContainSubstring("givenUp")))
		})
	}
}

// A retry that cannot be checked, for example while a webhook does not answer, blocks no other phase.
func TestErrorOfTrialBlocksOnlyTheRetry(t *testing.T) {
	h := newFailedHub(t)
	h.applyFails = apierrors.NewInternalError(errors.New(
		`failed calling webhook "c": Post "https://hive.example.com/validate?token=secret": no endpoints`,
	))
	h.failing = `"kind":"ClusterDeployment"`
	h.alter(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		s.MachineTemplate.ObjectMeta.Labels = map[string]string{"rack": "1"}
	})
	h.requestRetry("1")
	for range 2 {
		h.endDeferral()
		_, err := h.r.Reconcile(t.Context(), h.request())
		h.Expect(err).To(MatchError(ContainSubstring("no endpoints")))
	}
	h.Expect(h.machines()).To(ContainElement(HaveField("Labels", HaveKeyWithValue("rack", "1"))), "the other phases run")
	installed := conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition)
	h.Expect(*installed).To(And(HaveField("Reason", controlplanev1.InstallationFailedReason), HaveField("Message", And(
		ContainSubstring("the installation is not retried yet: its registration could not be checked"),
		ContainSubstring("no endpoints"), Not(ContainSubstring("secret"))))))
	h.expectNoDeletion()
	h.Expect(h.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.RetriedInstallationAnnotation))
	h.applyFails = nil
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(controlplanev1.RetriedInstallationAnnotation, ContainSubstring("givenUp")))
}

// Each event of the cluster would otherwise send the requests of the trial through all admission webhooks.
func TestRefusedRetryIsTriedAtLimitedRate(t *testing.T) {
	h := newFailedHub(t)
	h.applyFails, h.failing = undeclared("AgentClusterInstall", "spec.some"), `"imageSetRef"`
	h.requestRetry("1")
	h.reconcile()
	h.step(reconcile.RefusedDelay - time.Second)
	h.writes = nil
	h.Expect(h.reconcile().RequeueAfter).To(BeNumerically("<=", time.Second))
	h.Expect(h.writes).NotTo(ContainElement("apply"))
	h.Expect(h.installedCondition().Message).To(ContainSubstring("AgentClusterInstall c1 was refused"))

	h.alter(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		s.Config.SSHAuthorizedKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ corrected"
	})
	h.writes = nil
	h.reconcile()
	h.Expect(h.writes).To(ContainElement("apply"), "other content may be accepted")
	h.applyFails = nil
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.RetriedInstallationAnnotation))
	h.step(reconcile.RefusedDelay)
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(controlplanev1.RetriedInstallationAnnotation, ContainSubstring("givenUp")))
}

// The deletion of the failed installation releases its share of the quota.
func TestExhaustedQuotaDoesNotBlockTheRetry(t *testing.T) {
	h := newFailedHub(t)
	h.applyFails = apierrors.NewForbidden(hivev1.Resource("clusterdeployments"), "c1", errors.New("exceeded quota: count"))
	h.failing = `"kind":"ClusterDeployment"`
	h.requestRetry("1")
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(controlplanev1.RetriedInstallationAnnotation, ContainSubstring("givenUp")))
}

func TestRunningClusterIsNotGivenUpFurther(t *testing.T) {
	h := newFailedHub(t)
	h.requestRetry("1")
	h.reconcile()
	h.workloads.facts = workload.State{Connected: true}
	recorder := record.NewFakeRecorder(10)
	h.recorder.EventRecorder = recorder
	h.reconcile()
	h.Expect(recorder.Events).To(Receive(ContainSubstring("InstallationRetryStopped")))
	h.Expect(h.controlPlane().Annotations).To(
		HaveKeyWithValue(controlplanev1.RetriedInstallationAnnotation, `{"requested":"1"}`), "and the request is withdrawn",
	)
	h.workloads.facts = workload.State{}
	h.silenceAPI()
	h.reconcile()
	h.expectNoDeletion()
}

func TestClusterThatMayRunIsNotGivenUpFurther(t *testing.T) {
	for because, failure := range map[string]*workload.Failure{
		"it is not known yet":                nil, // this process has just started
		"not sure that the cluster does not": {Kind: workload.Unauthorized},
	} {
		t.Run(because, func(t *testing.T) {
			h := newFailedHub(t)
			h.requestRetry("1")
			h.reconcile()
			if failure != nil {
				failure.KubeconfigVersion = h.published().ResourceVersion
			}
			h.workloads.facts.Failure = failure
			h.reconcile()
			h.expectNoDeletion()
			h.Expect(*h.installedCondition()).To(
				And(HaveField("Reason", controlplanev1.RetryingInstallationReason), HaveField("Message", ContainSubstring(because))),
			)
		})
	}
}

// expectNoDeletion checks that no Machine is being deleted.
func (h *hub) expectNoDeletion() {
	h.t.Helper()
	for _, m := range h.machines() {
		h.Expect(m.DeletionTimestamp).To(BeZero())
	}
}

// finishDeletionOfInstallation ends the deletion of the Machines and of the registration of an installation
// that is given up.
func (h *hub) finishDeletionOfInstallation() {
	h.t.Helper()
	for _, m := range h.machines() {
		if m.Name != "others" {
			h.finishDeletion(m.Name, &m)
		}
	}
	h.reconcile()
	h.finishDeletion("c1", &hivev1.ClusterDeployment{})
	h.reconcile()
	h.finishDeletion("c1", &hiveext.AgentClusterInstall{})
}

// The kubeconfig may come from a backup that is restored while the recorded one is being deleted.
func TestUnrecordedKubeconfigBlocksTheNextInstallation(t *testing.T) {
	h := newFailedHub(t)
	h.requestRetry("1")
	h.reconcile()
	published := h.published()
	published.UID = "restored"
	h.Expect(h.Update(t.Context(), published)).To(Succeed())
	h.silenceAPI()
	h.reconcile()
	h.finishDeletionOfInstallation()
	for range 3 {
		h.reconcile()
	}
	h.Expect(h.machines()).To(HaveLen(1), "no Machine is created")
	h.Expect(h.controlPlane().Status.Installation.Phase).NotTo(Equal(controlplanev1.InstallationInstalled))
	h.Expect(h.installedCondition().Message).To(ContainSubstring("Secret cluster1-kubeconfig was not recorded"))
}

func TestOldRecordOfAnInstalledClusterIsDropped(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.workloads.facts = workload.State{} // only the record of the installation remains as evidence
	cp := h.controlPlane()
	cp.Status.Initialization.ControlPlaneInitialized = nil
	h.Expect(h.Status().Update(t.Context(), cp)).To(Succeed())
	cp.Annotations = map[string]string{controlplanev1.RetriedInstallationAnnotation: `{"requested":"1","givenUp":["former"]}`}
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(controlplanev1.RetriedInstallationAnnotation, `{"requested":"1"}`))
	h.Expect(h.controlPlane().Status.Installation.Phase).To(Equal(controlplanev1.InstallationInstalled))
}

func TestAnnotationFromBeforeTheFailureRequestsNoRetry(t *testing.T) {
	h := newHub(t, world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Annotations = map[string]string{controlplanev1.RetryInstallationAnnotation: "0"}
	})...).withTime()
	h.reconcile()
	h.setState("error", hiveext.ClusterInstallationFailedReason, 30)
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(controlplanev1.RetriedInstallationAnnotation, `{"requested":"0"}`))
	for _, m := range h.machines() {
		h.Expect(m.DeletionTimestamp).To(BeZero())
	}
	h.requestRetry("1")
	h.reconcile()
	h.Expect(h.controlPlane().Annotations).To(HaveKeyWithValue(controlplanev1.RetriedInstallationAnnotation, ContainSubstring("givenUp")))
}

// Restored objects have other UIDs, and may be running.
func TestUnrecordedObjectsAreNotGivenUp(t *testing.T) {
	h := newFailedHub(t)
	h.requestRetry("1")
	h.reconcile()
	for _, m := range h.machines() {
		m.UID = "restored-" + m.UID
		h.Expect(h.Update(t.Context(), &m)).To(Succeed())
	}
	deployment, install := h.registration()
	for _, obj := range []client.Object{deployment, install, h.published()} {
		obj.SetUID("restored-" + obj.GetUID())
		h.Expect(h.Update(t.Context(), obj)).To(Succeed())
	}
	h.silenceAPI()
	for range 3 {
		h.reconcile()
	}
	deployment, install = h.registration()
	h.Expect(deployment.DeletionTimestamp).To(BeZero())
	h.Expect(install.DeletionTimestamp).To(BeZero())
	for _, m := range h.machines() {
		h.Expect(m.DeletionTimestamp).To(BeZero())
	}
	h.Expect(h.controlPlane().Annotations).To(
		HaveKeyWithValue(controlplanev1.RetriedInstallationAnnotation, And(HavePrefix(`{"requested":"1",`), Not(ContainSubstring("givenUp")))),
	)
}

func TestUnreadableRecordIsReported(t *testing.T) {
	h := newFailedHub(t)
	cp := h.controlPlane()
	cp.Annotations = map[string]string{controlplanev1.RetryInstallationAnnotation: "1", controlplanev1.RetriedInstallationAnnotation: "{"}
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	h.Expect(h.installedCondition().Message).To(ContainSubstring("remove it"))
}
