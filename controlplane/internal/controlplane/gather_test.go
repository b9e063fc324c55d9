package controlplane

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

func TestPhasesDoNotChangeTheFacts(t *testing.T) {
	for situation, bring := range map[string]func(h *hub){
		"all objects are missing": func(*hub) {},
		"two Machines are missing, and all need their conditions": func(h *hub) {
			h.reconcile()
			cp := h.controlPlane()
			cp.Spec.Replicas = ptr.To[int32](5)
			h.Expect(h.Update(h.t.Context(), cp)).To(Succeed())
		},
		"the kubeconfig is not published, and labels are missing": func(h *hub) {
			h.reconcile()
			h.giveKubeconfig("assisted-service")
			h.setState("installing", hiveext.ClusterInstallationInProgressReason, 30)
			deployment, install := h.registration()
			h.relabelAll(nil, deployment, install)
		},
		"the move block has to end, and the kubeconfig is due for renewal": func(h *hub) {
			h.reconcile()
			h.giveKubeconfig("assisted-service")
			h.setState("adding-hosts", hiveext.ClusterInstalledReason, 100)
			h.workloads.facts = workload.State{Connected: true, OpenShiftVersion: "4.19.3"}
		},
		"the cluster has to be deregistered, and labels are missing": func(h *hub) {
			h.install()
			h.Expect(h.Delete(h.t.Context(), h.controlPlane())).To(Succeed())
			h.reconcile()
			deployment, install := h.registration()
			h.relabelAll(nil, deployment, install)
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newHub(t, world(nil)...).withTime()
			bring(h)
			s, err := h.r.gather(t.Context(), h.controlPlane())
			h.Expect(err).NotTo(HaveOccurred())
			read, err := json.Marshal(s.Facts)
			h.Expect(err).NotTo(HaveOccurred())
			h.writes = nil
			h.Expect(h.r.advance(t.Context(), s)).To(Succeed())
			h.Expect(h.writes).NotTo(BeEmpty(), "the phases had work to do")
			h.Expect(json.Marshal(s.Facts)).To(MatchJSON(read))
		})
	}
}

// assisted-service binds Agents across namespaces. An Agent of another namespace does not count and has no
// effect: a tenant could name its InfraEnv like a Machine.
func TestAgentsOfOtherNamespacesDoNotCount(t *testing.T) {
	bound := func(namespace, name string) *aiv1beta1.Agent {
		return &aiv1beta1.Agent{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{aiv1beta1.InfraEnvNameLabel: "m"}},
			Spec:       aiv1beta1.AgentSpec{ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: lab, Name: "c1"}},
		}
	}
	h := newHub(t, append(world(nil), bound(lab, "ours"), bound("tenant", "theirs"))...)
	h.Expect(h.gather().Agents).To(ConsistOf(HaveField("Name", "ours")))
	h.Expect(h.r.ofAgent(t.Context(), bound(lab, "ours"))).To(ConsistOf(h.request()))
	h.Expect(h.gather().ForeignAgents).To(ConsistOf("tenant/theirs"))
	h.Expect(h.r.ofAgent(t.Context(), bound("tenant", "theirs"))).To(ConsistOf(h.request()), "the foreign Agent is reported")
}

// assisted-service counts Agents of any namespace. If one of ours is missing, it would install the server of
// another tenant.
func TestForeignAgentBlocksTheInstallation(t *testing.T) {
	theirs := &aiv1beta1.Agent{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "theirs"},
		Spec:       aiv1beta1.AgentSpec{Approved: true, ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: lab, Name: "c1"}},
	}
	h := newHub(t, append(world(nil), theirs)...).withTime()
	h.reconcile()
	_, install := h.registration()
	h.Expect(install.Spec.HoldInstallation).To(BeTrue())
	c := conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition)
	h.Expect(c.Reason).To(Equal(controlplanev1.ForeignAgentsBoundReason))
	h.Expect(c.Message).To(And(ContainSubstring("The installation is blocked"), ContainSubstring("tenant/theirs")))

	h.Expect(h.Delete(t.Context(), theirs)).To(Succeed())
	h.reconcile()
	_, install = h.registration()
	h.Expect(install.Spec.HoldInstallation).To(BeFalse())
	h.Expect(conditions.GetReason(h.controlPlane(), controlplanev1.InstalledCondition)).NotTo(Equal(controlplanev1.ForeignAgentsBoundReason))
}

func TestForeignAgentInAnInstalledClusterIsReported(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.Expect(h.Create(t.Context(), &aiv1beta1.Agent{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "theirs"},
		Spec:       aiv1beta1.AgentSpec{ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: lab, Name: "c1"}},
	})).To(Succeed())
	h.reconcile()
	h.expectRegistration(controlplanev1.ForeignAgentsBoundReason, "tenant/theirs")
}

// The contract of Cluster API permits no write while the Cluster is paused. The hold is written after the
// pause.
func TestPausedControlPlaneDoesNotBlockTheInstallationForForeignAgents(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	cp := h.controlPlane()
	cp.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	h.Expect(h.Create(t.Context(), &aiv1beta1.Agent{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "theirs"},
		Spec:       aiv1beta1.AgentSpec{ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: lab, Name: "c1"}},
	})).To(Succeed())
	h.reconcile()
	_, install := h.registration()
	h.Expect(install.Spec.HoldInstallation).To(BeFalse())
	cp = h.controlPlane()
	delete(cp.Annotations, clusterv1.PausedAnnotation)
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	h.reconcile()
	_, install = h.registration()
	h.Expect(install.Spec.HoldInstallation).To(BeTrue())
}

// The bootstrap provider approves our last host even if the registration is blocked.
func TestForeignAgentBlocksTheInstallationAlthoughTheRegistrationIsBlocked(t *testing.T) {
	for situation, wait := range map[string]func(h *hub, cp *controlplanev1.OpenshiftAssistedControlPlane){
		"a ConfigMap is missing": func(_ *hub, cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.Config.ManifestsConfigMapRefs = []corev1.LocalObjectReference{{Name: "extra"}}
		},
		"the pull secret is missing": func(_ *hub, cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.Config.PullSecretRef = &corev1.LocalObjectReference{Name: "other"}
		},
		"the AgentClusterInstall is refused": func(h *hub, cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.Config.SSHAuthorizedKey = "changed"
			h.applyFails, h.failing = apierrors.NewBadRequest("refused"), "changed"
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newHub(t, world(nil)...).withTime()
			h.reconcile()
			cp := h.controlPlane()
			before := cp.Spec
			wait(h, cp)
			h.Expect(h.Update(t.Context(), cp)).To(Succeed())
			theirs := &aiv1beta1.Agent{
				ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "theirs"},
				Spec:       aiv1beta1.AgentSpec{Approved: true, ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: lab, Name: "c1"}},
			}
			h.Expect(h.Create(t.Context(), theirs)).To(Succeed())
			h.endDeferral()
			h.reconcile()
			_, install := h.registration()
			h.Expect(install.Spec.HoldInstallation).To(BeTrue())
			h.Expect(install.Spec.ProvisionRequirements.ControlPlaneAgents).To(Equal(3), "all other fields stay")
			h.Expect(conditions.GetReason(h.controlPlane(), controlplanev1.InstalledCondition)).To(Equal(controlplanev1.ForeignAgentsBoundReason))

			h.Expect(h.Delete(t.Context(), theirs)).To(Succeed())
			h.endDeferral()
			h.reconcile()
			_, install = h.registration()
			h.Expect(install.Spec.HoldInstallation).To(BeTrue(), "the dependency is still missing")

			cp = h.controlPlane()
			cp.Spec, h.applyFails = before, nil
			h.Expect(h.Update(t.Context(), cp)).To(Succeed())
			h.endDeferral()
			h.reconcile()
			_, install = h.registration()
			h.Expect(install.Spec.HoldInstallation).To(BeFalse())
		})
	}
}

func TestRejectedBlockForForeignAgentIsReported(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.Expect(h.Create(t.Context(), &aiv1beta1.Agent{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "theirs"},
		Spec:       aiv1beta1.AgentSpec{ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: lab, Name: "c1"}},
	})).To(Succeed())
	h.applyFails, h.failing = apierrors.NewBadRequest(
		"Attempted to change AgentClusterInstall.Spec which is immutable after install started",
	), "holdInstallation"
	h.endDeferral()
	h.Expect(h.reconcile().RequeueAfter).To(BeNumerically("<=", reconcile.RefusedDelay))
	for range 5 {
		s := h.gather()
		_, err := h.r.registrar.BlockForForeignAgents(t.Context(), s)
		h.Expect(err).NotTo(HaveOccurred())
		h.Expect(s.Again.Delay()).To(Equal(reconcile.RefusedDelay), "the interval does not grow")
		now := h.clock.Now().Add(reconcile.RefusedDelay)
		h.clock.now = func() time.Time { return now }
	}
	h.Expect(*conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition)).To(And(
		HaveField("Reason", controlplanev1.InstallationRejectedReason), HaveField("Message", ContainSubstring("tenant/theirs"))))
}

// A user may hold the installation in the AgentClusterInstall itself.
func TestHoldOfAnotherClientStays(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	_, install := h.registration()
	held := install.DeepCopy()
	held.Spec.HoldInstallation = true
	h.Expect(h.Patch(t.Context(), held, client.MergeFrom(install), client.FieldOwner("kubectl"))).To(Succeed())
	h.endDeferral()
	h.reconcile()
	_, install = h.registration()
	h.Expect(install.Spec.HoldInstallation).To(BeTrue())
}
