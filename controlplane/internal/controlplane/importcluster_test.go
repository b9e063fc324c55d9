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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/tokens"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// newMovedHub returns a hub to which an installed cluster was moved, before the first reconcile there.
func newMovedHub(t *testing.T) *hub {
	t.Helper()
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.workloads.facts.ReleaseImage = digest
	h.forget()
	admin := &corev1.Secret{}
	h.get("c1-admin-kubeconfig", admin)
	h.Expect(h.Delete(t.Context(), admin)).To(Succeed())
	h.Expect(h.DeleteAllOf(t.Context(), &hivev1.ClusterImageSet{})).To(Succeed())
	h.writes = nil
	return h
}

func (h *hub) aci() *hiveext.AgentClusterInstall {
	h.t.Helper()
	install := &hiveext.AgentClusterInstall{}
	h.get("c1", install)
	return install
}

func (h *hub) expectNotRegistered() {
	h.t.Helper()
	for _, obj := range []client.Object{&hivev1.ClusterDeployment{}, &hiveext.AgentClusterInstall{}} {
		h.Expect(
			h.Get(h.t.Context(), client.ObjectKey{Namespace: lab, Name: "c1"}, obj),
		).To(MatchError(apierrors.IsNotFound, "not found"), "%T", obj)
	}
}

// expectRegistration checks what the condition Installed reports about the import.
func (h *hub) expectRegistration(reason, message string) {
	h.t.Helper()
	cp := h.controlPlane()
	h.Expect(*conditions.Get(cp, controlplanev1.InstalledCondition)).To(And(
		HaveField("Status", metav1.ConditionTrue), HaveField("Reason", controlplanev1.InstalledReason), HaveField("Message", BeEmpty()),
	))
	c := conditions.Get(cp, controlplanev1.RegistrationHealthyCondition)
	if reason == "" {
		h.Expect(c).To(BeNil())
		return
	}
	h.Expect(*c).To(And(
		HaveField("Status", metav1.ConditionFalse), HaveField("Reason", reason), HaveField("Message", ContainSubstring(message)),
	))
}

// assistedKubeconfig returns the kubeconfig of assisted-service.
func (h *hub) assistedKubeconfig() *corev1.Secret {
	h.t.Helper()
	secret := &corev1.Secret{}
	h.get("c1-admin-kubeconfig", secret)
	return secret
}

func TestMovedClusterIsImported(t *testing.T) {
	h := newMovedHub(t)
	h.workloads.facts.OpenShiftVersion = "4.19.7" // it was upgraded
	h.reconcile()

	deployment := &hivev1.ClusterDeployment{}
	h.get("c1", deployment)
	h.Expect(deployment.Spec.Installed).To(BeTrue())
	h.Expect(*deployment.Spec.ClusterMetadata).To(Equal(hivev1.ClusterMetadata{
		ClusterID: "cluster-id", InfraID: "cluster1-x7k2p", AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "c1-admin-kubeconfig"},
	}))
	h.Expect(deployment.Annotations).To(HaveKeyWithValue(assisted.OpenShiftVersionAnnotation, "4.19.7"))
	install := h.aci()
	h.Expect(install.Spec.HoldInstallation).To(BeTrue(), "no installation can start if assisted-service mistakes the cluster for a new one")
	h.Expect(install.Spec.ClusterMetadata).To(Equal(deployment.Spec.ClusterMetadata))
	h.Expect(install.Annotations).To(HaveKey(facts.ImportedAnnotation))
	set := &hivev1.ClusterImageSet{}
	h.Expect(h.Get(t.Context(), client.ObjectKey{Name: install.Spec.ImageSetRef.Name}, set)).To(Succeed())
	h.Expect(set.Spec.ReleaseImage).To(Equal(digest), "the image of the running release")
	h.Expect(h.assistedKubeconfig().Data["kubeconfig"]).To(Equal(h.published().Data["value"]))
	h.Expect(h.assistedKubeconfig().OwnerReferences).To(ConsistOf(And(HaveField("Kind", "ClusterDeployment"), HaveField("Name", "c1"))))
	h.Expect(h.writes[:4]).To(Equal([]string{
		"apply", "create c1", "apply", "create c1",
	}), "set, ClusterDeployment, Secret, and AgentClusterInstall last")
	h.expectRegistration(controlplanev1.WaitingForImportReason, "")

	h.reconcile()
	h.endDeferral()
	h.reconcile()
	h.expectRegistration(controlplanev1.WaitingForImportReason, "import the installed cluster")
	h.setState("adding-hosts", hiveext.ClusterInstalledReason, 0)
	h.reconcile()
	h.expectRegistration("", "")
	h.reconcile()
	writes := len(h.writes)
	h.reconcile()
	h.Expect(h.writes).To(HaveLen(writes), "no write without a change")
	h.Expect(h.aci().Spec).To(Equal(install.Spec))
}

// The token in the published kubeconfig expires, and with it the token in the copy. The copy is never
// published.
func TestCopyForAssistedServiceFollowsThePublishedKubeconfig(t *testing.T) {
	h := newMovedHub(t)
	h.reconcile()
	h.setState("adding-hosts", hiveext.ClusterInstalledReason, 0)
	h.reconcile()
	h.expectToken("token-1")
	h.clock.now = func() time.Time { return time.Now().Add(tokens.Validity/2 + time.Hour) }
	h.reconcile()
	h.reconcile()
	h.expectToken("token-2")
	h.Expect(h.assistedKubeconfig().Data["kubeconfig"]).To(Equal(h.published().Data["value"]))
	h.reconcile()
	h.Expect(h.workloads.issued).To(Equal(2))

	h.Expect(h.Delete(t.Context(), h.assistedKubeconfig())).To(Succeed())
	h.reconcile()
	h.Expect(h.assistedKubeconfig().Data["kubeconfig"]).To(Equal(h.published().Data["value"]), "the copy is created again")
}

func TestUnusedKubeconfigIsNotCopiedForAssistedService(t *testing.T) {
	for situation, content := range map[string][]byte{
		"it is refused": withTokenFile(kubeconfigOf("user")), "no connection uses it": kubeconfigOf("user"),
	} {
		t.Run(situation, func(t *testing.T) {
			h := newMovedHub(t)
			h.reconcile()
			lent := h.assistedKubeconfig().Data
			published := h.published()
			published.Data["value"] = content
			h.Expect(h.Update(t.Context(), published)).To(Succeed())
			h.workloads.facts.Connected = situation == "it is refused"
			h.reconcile()
			h.Expect(h.assistedKubeconfig().Data).To(Equal(lent))
		})
	}
}

func TestUsersKubeconfigForAssistedServiceIsKept(t *testing.T) {
	h := newMovedHub(t)
	own := &corev1.Secret{}
	own.Namespace, own.Name, own.Data = lab, "c1-admin-kubeconfig", map[string][]byte{"kubeconfig": kubeconfigOf("user")}
	h.Expect(h.Create(t.Context(), own)).To(Succeed())
	h.reconcile()
	h.setState("adding-hosts", hiveext.ClusterInstalledReason, 0)
	h.reconcile()
	h.Expect(h.assistedKubeconfig().Data).To(Equal(own.Data))
}

func TestClusterIsNotImportedWhileEvidenceIsMissing(t *testing.T) {
	for situation, tc := range map[string]struct {
		change          func(h *hub)
		reason, message string
	}{
		"while it does not answer": {
			func(h *hub) { h.workloads.facts = workload.State{} }, controlplanev1.WaitingForImportReason, "API server answers",
		},
		"while a Machine that may be running has no Node": {func(h *hub) {
			worker := &clusterv1.Machine{}
			worker.Namespace, worker.Name, worker.Spec.ClusterName = lab, "worker", "cluster1"
			worker.Spec.Bootstrap.DataSecretName = ptr.To("worker")
			h.Expect(h.Create(h.t.Context(), worker)).To(Succeed())
		}, controlplanev1.WaitingForImportReason, "Node of Machine worker"},
		"while its pull secret is missing": {func(h *hub) {
			h.Expect(h.Delete(h.t.Context(), pullSecret())).To(Succeed())
		}, controlplanev1.PullSecretMissingReason, "Secret pull"},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newMovedHub(t)
			tc.change(h)
			h.reconcile()
			h.expectNotRegistered()
			h.expectRegistration(tc.reason, tc.message)
		})
	}
}

// An existing ClusterDeployment is not changed. It has to state that the cluster is installed before an
// AgentClusterInstall is created.
func TestMissingAgentClusterInstallIsImported(t *testing.T) {
	for _, stated := range []bool{true, false} {
		h := newHub(t, world(nil)...).withTime()
		h.install()
		h.reconcile()
		deployment := &hivev1.ClusterDeployment{}
		h.get("c1", deployment)
		deployment.Spec.Installed = stated
		h.Expect(h.Update(t.Context(), deployment)).To(Succeed())
		h.Expect(h.Delete(t.Context(), h.aci())).To(Succeed())
		h.reconcile()
		after := &hivev1.ClusterDeployment{}
		h.get("c1", after)
		h.Expect(after.Spec).To(Equal(deployment.Spec))
		if stated {
			h.Expect(h.aci().Annotations).To(HaveKey(facts.ImportedAnnotation))
			h.Expect(h.assistedKubeconfig().Data["kubeconfig"]).To(
				Equal(kubeconfigOf("assisted-service")), "the kubeconfig of assisted-service itself",
			)
			continue
		}
		h.expectRegistration(controlplanev1.InvalidConfigurationReason, "set spec.installed")
		h.Expect(
			h.Get(t.Context(), client.ObjectKeyFromObject(deployment), &hiveext.AgentClusterInstall{}),
		).To(MatchError(apierrors.IsNotFound, "not found"))
	}
}

// The cache may lack the AgentClusterInstall of an installation.
func TestImportOverwritesNoObject(t *testing.T) {
	h := newMovedHub(t)
	stored := h.Client.(client.WithWatch) //nolint:forcetypeassert // the fake
	hidden := interceptor.NewClient(h.cached.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*hiveext.AgentClusterInstall); ok {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "agentclusterinstalls"}, key.Name)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	h.cached.Client = hidden
	existing := &hiveext.AgentClusterInstall{}
	existing.Namespace, existing.Name, existing.Spec.SSHPublicKey = lab, "c1", "theirs"
	h.Expect(stored.Create(t.Context(), existing)).To(Succeed())
	h.Expect(h.reconcile().RequeueAfter).NotTo(BeZero())
	h.Expect(h.aci().Spec).To(Equal(existing.Spec))
}

func TestImportKeepsForeignClusterImageSet(t *testing.T) {
	h := newMovedHub(t)
	theirs := assisted.ClusterImageSet(assisted.ClusterImageSetName(lab, "c1", digest), otherDigest, nil, nil)
	h.Expect(h.Create(t.Context(), theirs)).To(Succeed())
	h.reconcile()
	set := &hivev1.ClusterImageSet{}
	h.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(theirs), set)).To(Succeed())
	h.Expect(set.Spec.ReleaseImage).To(Equal(otherDigest))
	h.expectNotRegistered()
	h.expectRegistration(controlplanev1.InstallationNotOursReason,
		"ClusterImageSet "+theirs.Name+" exists and was not created for this control plane")
}

// An interrupted import is continued.
func TestInterruptedImportIsContinued(t *testing.T) {
	h := newMovedHub(t)
	h.workloads.identify = errors.New("cannot be read")
	_, err := h.r.Reconcile(t.Context(), h.request())
	h.Expect(err).To(MatchError(ContainSubstring("cannot be read")))
	h.expectNotRegistered()
	h.workloads.identify = cluster.ErrNotConnected
	h.reconcile()
	h.expectNotRegistered()
	h.workloads.identify = nil
	h.reconcile()
	h.Expect(h.Delete(t.Context(), h.aci())).To(Succeed())
	h.Expect(h.Delete(t.Context(), h.assistedKubeconfig())).To(Succeed())
	h.reconcile()
	h.Expect(h.aci().Spec.HoldInstallation).To(BeTrue())
	h.Expect(h.assistedKubeconfig().Data).NotTo(BeEmpty())

	deployment := &hivev1.ClusterDeployment{}
	h.get("c1", deployment)
	h.Expect(h.Delete(t.Context(), deployment)).To(Succeed())
	h.reconcile()
	h.get("c1", deployment)
	h.Expect(deployment.Spec.Installed).To(BeTrue())
}

// A cluster without AgentClusterInstall that is not proven to be installed is not imported.
func TestStartedInstallationIsNotImported(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.setState("installing", hiveext.ClusterInstallationInProgressReason, 50)
	h.reconcile()
	h.Expect(h.Delete(t.Context(), h.aci())).To(Succeed())
	h.workloads.facts = workload.State{Connected: true, LastSuccess: time.Now()}
	h.reconcile()
	h.Expect(
		h.Get(t.Context(), client.ObjectKey{Namespace: lab, Name: "c1"}, &hiveext.AgentClusterInstall{}),
	).To(MatchError(apierrors.IsNotFound, "not found"))
	c := conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition)
	h.Expect(c.Reason).To(Equal(controlplanev1.WaitingForAssistedServiceReason))
	h.Expect(c.Message).To(
		ContainSubstring("Restore it from a backup. If nothing runs on the hosts yet, delete the Cluster, which wipes them, and create it again"),
	)
}

// An imported cluster is deregistered like one that was installed here.
func TestImportedClusterIsDeregistered(t *testing.T) {
	h := newMovedHub(t)
	h.reconcile()
	h.setState("adding-hosts", hiveext.ClusterInstalledReason, 0)
	h.reconcile()
	h.Expect(h.Delete(t.Context(), h.controlPlane())).To(Succeed())
	for range 5 {
		_, err := h.r.Reconcile(t.Context(), h.request())
		h.Expect(err).NotTo(HaveOccurred())
		for _, m := range h.machines() {
			m.Finalizers = nil
			h.Expect(client.IgnoreNotFound(h.Update(t.Context(), &m))).To(Succeed())
		}
	}
	h.expectNotRegistered()
	sets := &hivev1.ClusterImageSetList{}
	h.Expect(h.List(t.Context(), sets)).To(Succeed())
	h.Expect(sets.Items).To(BeEmpty())
}
