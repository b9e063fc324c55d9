package controlplane

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// registration returns the objects of the registration in assisted-service.
func (h *hub) registration() (*hivev1.ClusterDeployment, *hiveext.AgentClusterInstall) {
	h.t.Helper()
	deployment, install := &hivev1.ClusterDeployment{}, &hiveext.AgentClusterInstall{}
	h.get("c1", deployment)
	h.get("c1", install)
	return deployment, install
}

func (h *hub) relabelAll(labels map[string]string, objects ...client.Object) {
	h.t.Helper()
	for _, obj := range objects {
		obj.SetLabels(labels)
		h.Expect(h.Update(h.t.Context(), obj)).To(Succeed())
	}
}

func TestRemovedLabelsAreRestored(t *testing.T) {
	for situation, bring := range map[string]func(h *hub){
		"before the installation": func(h *hub) { h.reconcile() },
		"during the installation": func(h *hub) {
			h.reconcile()
			h.setState("installing", hiveext.ClusterInstallationInProgressReason, 30)
			h.reconcile()
		},
		"after the installation": func(h *hub) { h.install() },
	} {
		t.Run(situation, func(t *testing.T) {
			h := newHub(t, world(nil)...).withTime()
			bring(h)
			deployment, install := h.registration()
			h.relabelAll(nil, deployment, install)
			h.reconcile()
			h.reconcile()
			deployment, install = h.registration()
			for _, obj := range []client.Object{deployment, install} {
				h.Expect(obj.GetLabels()).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "cluster1"), "%T", obj)
				h.Expect(obj.GetLabels()).To(HaveKeyWithValue(clusterv1.MachineControlPlaneNameLabel, "c1"), "%T", obj)
			}
			h.Expect(
				conditions.GetReason(h.controlPlane(), controlplanev1.InstalledCondition),
			).NotTo(Equal(controlplanev1.InstallationNotOursReason))
		})
	}
}

func TestRegistrationWithoutLabelsIsDeregistered(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	deployment, install := h.registration()
	h.Expect(h.Delete(t.Context(), h.controlPlane())).To(Succeed())
	h.reconcile()
	h.relabelAll(nil, deployment, install)
	for range 5 {
		h.reconcile()
	}
	key := client.ObjectKey{Namespace: lab, Name: "c1"}
	for _, deleted := range []client.Object{&hivev1.ClusterDeployment{}, &hiveext.AgentClusterInstall{}} {
		h.Expect(apierrors.IsNotFound(h.Get(t.Context(), key, deleted))).To(BeTrue(), "%T is left behind in assisted-service", deleted)
	}
}

// Objects that are created together with a ClusterDeployment that is being deleted would be deleted with it.
// They are created afterwards.
func TestRegistrationThatIsBeingDeletedIsCreatedAgainAfterwards(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	deployment, install := h.registration()
	deployment.Finalizers = []string{"clusterdeployments.agent-install.openshift.io/ai-deprovision"}
	h.Expect(h.Update(t.Context(), deployment)).To(Succeed())
	h.Expect(h.Delete(t.Context(), deployment)).To(Succeed())
	h.Expect(h.Delete(t.Context(), install)).To(Succeed())
	h.reconcile()
	h.endDeferral()
	h.reconcile()
	key := client.ObjectKeyFromObject(install)
	h.Expect(apierrors.IsNotFound(h.Get(t.Context(), key, install))).To(
		BeTrue(), "no AgentClusterInstall is created for a deleted ClusterDeployment",
	)
	installed := conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition)
	h.Expect(installed).To(HaveField("Reason", controlplanev1.WaitingForAssistedServiceReason))
	h.Expect(installed.Message).To(And(ContainSubstring("ClusterDeployment c1"), ContainSubstring("created again")))

	h.get("c1", deployment)
	deployment.Finalizers = nil
	h.Expect(h.Update(t.Context(), deployment)).To(Succeed())
	h.reconcile()
	h.registration()
}

func TestForeignInstallationIsNoEvidence(t *testing.T) {
	other := &hiveext.AgentClusterInstall{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "c1"}}
	other.Spec.ClusterMetadata = &hivev1.ClusterMetadata{}
	h := newHub(t, append(world(nil), other)...)
	h.setState("adding-hosts", hiveext.ClusterInstalledReason, 100)
	h.reconcile()
	h.Expect(h.controlPlane().Status.Installation.Phase).To(Equal(controlplanev1.InstallationPending))
	h.Expect(h.machines()).To(BeEmpty())
	c := conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition)
	h.Expect(c.Status).To(Equal(metav1.ConditionFalse))
	h.Expect(c.Reason).To(Equal(controlplanev1.InstallationNotOursReason))
}

func TestTemplateGetsItsOwnerBeforeTheInfrastructureExists(t *testing.T) {
	h := newHub(t, altered(func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = nil })(world(nil))...).withTime()
	h.reconcile()
	h.Expect(h.imageSets()).To(HaveLen(1))
	h.Expect(h.writes).To(ContainElement("patch hosts"), "the template belongs to the Cluster")
	h.Expect(apierrors.IsNotFound(h.Get(t.Context(), client.ObjectKey{Namespace: lab, Name: "c1"}, &hivev1.ClusterDeployment{}))).To(BeTrue())

	cluster := &clusterv1.Cluster{}
	h.get("cluster1", cluster)
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	h.Expect(h.Update(t.Context(), cluster)).To(Succeed())
	h.reconcile()
	h.registration()
}

// A ClusterDeployment of a former Cluster of the same name may belong to a running cluster. It is not
// changed, and its installation is no evidence.
func TestRegistrationOfFormerClusterIsNotOurs(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	deployment, install := h.registration()
	for _, obj := range []client.Object{deployment, install} {
		h.Expect(obj.GetAnnotations()).To(HaveKeyWithValue(contract.ClusterUIDAnnotation, "cluster-uid"), "%T", obj)
		obj.GetAnnotations()[contract.ClusterUIDAnnotation] = "former-uid"
		h.Expect(h.Update(t.Context(), obj)).To(Succeed())
	}
	s := h.gather()
	h.Expect(ownership.OwnsDeployment(s.Facts)).To(BeFalse())
	h.Expect(ownership.OwnsInstall(s.Facts)).To(BeFalse())
	h.Expect(s.Registration()).To(BeEmpty(), "the deletion of this cluster does not deregister it")
	proceed, err := h.r.registrar.Register(t.Context(), s)
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(proceed).To(BeFalse())
	blocked := s.Found.Blocked(tasks.Installation)
	h.Expect(blocked.Reason).To(Equal(controlplanev1.InstallationNotOursReason))
	h.Expect(blocked.Message).To(
		And(
			ContainSubstring("ClusterDeployment c1 was created for a former Cluster cluster1 (UID former-uid)"),
			ContainSubstring(contract.ClusterUIDsAnnotation),
		),
	)

	h.annotate(contract.ClusterUIDsAnnotation, h.controlPlane().Annotations[contract.ClusterUIDsAnnotation]+",former-uid")
	h.reconcile()
	h.reconcile()
	deployment, install = h.registration()
	for _, obj := range []client.Object{deployment, install} {
		h.Expect(obj.GetAnnotations()).To(
			HaveKeyWithValue(contract.ClusterUIDAnnotation, "cluster-uid"), "the user states that it belongs to this cluster: %T", obj,
		)
	}
}

// clusterctl move and a restore give the Cluster another UID, and keep the annotations of the control plane.
// A cluster that is moved back finds the registration that it left there.
func TestRegistrationStaysOursWhenTheClusterGetsAnotherUID(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	for _, uid := range []types.UID{"uid-on-the-other-hub", "uid-after-the-way-back"} {
		cluster := &clusterv1.Cluster{}
		h.get("cluster1", cluster)
		cluster.UID = uid
		h.Expect(h.Delete(t.Context(), cluster)).To(Succeed())
		cluster.ResourceVersion = ""
		h.Expect(h.Create(t.Context(), cluster)).To(Succeed())
		cp := h.controlPlane()
		cp.OwnerReferences[0].UID = uid
		h.Expect(h.Update(t.Context(), cp)).To(Succeed())
		h.reconcile()
		h.reconcile()
		deployment, install := h.registration()
		for _, obj := range []client.Object{deployment, install} {
			h.Expect(obj.GetAnnotations()).To(HaveKeyWithValue(contract.ClusterUIDAnnotation, string(uid)), "%T", obj)
		}
		h.Expect(h.controlPlane().Status.Installation.Phase).To(Equal(controlplanev1.InstallationInstalled))
	}
	h.Expect(contract.ClusterUIDs(h.controlPlane())).To(Equal([]types.UID{"cluster-uid", "uid-on-the-other-hub", "uid-after-the-way-back"}))
}

// The cache of ClusterDeployments lags: another client deleted the ClusterDeployment, and assisted-service
// deleted the AgentClusterInstall with it.
func TestNoInstallationIsCreatedForDeletedClusterDeployment(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	cached, install := h.registration()
	controllerutil.AddFinalizer(cached, "clusterdeployments.agent-install.openshift.io/ai-deprovision")
	h.Expect(h.Update(t.Context(), cached)).To(Succeed())
	h.Expect(h.Delete(t.Context(), cached.DeepCopy())).To(Succeed())
	install.Finalizers = nil
	h.Expect(h.Update(t.Context(), install)).To(Succeed())
	h.Expect(client.IgnoreNotFound(h.Delete(t.Context(), install))).To(Succeed())

	h.cached.Client = kubetest.StaleCacheOf(h.cached.Client, cached, (*hivev1.ClusterDeployment).DeepCopyInto)
	h.Expect(h.reconcile().RequeueAfter).To(Equal(reconcile.CacheLag))
	h.Expect(
		apierrors.IsNotFound(h.Get(t.Context(), client.ObjectKeyFromObject(install), &hiveext.AgentClusterInstall{})),
	).To(BeTrue(), "assisted-service would delete it again")
}

// TestNTPSourcesNeedNewerService: the API server of an older assisted-service refuses the field, and no cluster is registered
// without it. A newer one gets the field once.
func TestNTPSourcesNeedNewerService(t *testing.T) {
	h := newHub(t, world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Config.NTPSources = []string{"ntp.example.com", "fd00::1"}
	})...).withTime()
	h.failing = `"ntpSources":["ntp.example.com","fd00::1"]`
	h.applyFails = errors.New("failed to create typed patch object (lab/c1): .spec.ntpSources: field not declared in schema")
	h.reconcile()
	refused := conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition)
	h.Expect(refused.Reason).To(Equal(controlplanev1.InstallationRejectedReason))
	h.Expect(refused.Message).To(ContainSubstring("spec.ntpSources: field not declared in schema"))
	h.Expect(apierrors.IsNotFound(h.Get(t.Context(), types.NamespacedName{Namespace: "lab", Name: "c1"}, &hiveext.AgentClusterInstall{}))).
		To(BeTrue(), "no cluster is registered with other NTP servers")

	h.applyFails = nil
	h.reconcile()
	_, install := h.registration()
	h.Expect(install.Annotations).To(HaveKeyWithValue(assisted.NTPSourcesAnnotation, "ntp.example.com,fd00::1"))
	h.failing, h.applyFails = `"ntpSources"`, errors.New("applied again")
	h.reconcile()
	h.reconcile()
}
