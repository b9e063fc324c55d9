package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// forgotten returns a hub with an installed cluster that assisted-service treats as one to install. Its spec
// has changed since.
func forgotten(t *testing.T, objects ...client.Object) *hub {
	t.Helper()
	h := newHub(t, append(world(nil), objects...)...).withTime()
	h.install()
	h.etcds.Etcd = settledEtcd()
	h.setState("insufficient", hiveext.ClusterInstallationNotStartedReason, 0)
	cp := h.controlPlane()
	cp.Spec.Replicas = ptr.To[int32](5)
	cp.Spec.Config.SSHAuthorizedKey = "ssh-ed25519 new"
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	return h
}

// expectUntouched checks that a reregistered cluster was not changed.
func (h *hub) expectUntouched(before *hiveext.AgentClusterInstall) {
	h.t.Helper()
	aci := &hiveext.AgentClusterInstall{}
	h.get("c1", aci)
	h.Expect(aci.Spec).To(Equal(before.Spec))
	h.Expect(h.machines()).To(HaveLen(3), "no Machine for a cluster that would be installed over")
	created := conditions.Get(h.controlPlane(), controlplanev1.MachinesCreatedCondition)
	h.Expect(created.Reason).To(Equal(controlplanev1.ReregisteredReason))
	c := conditions.Get(h.controlPlane(), controlplanev1.RegistrationHealthyCondition)
	if c == nil { // its status does not show yet that the cluster is installed
		c = conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition)
	}
	h.Expect(c.Reason).To(Equal(controlplanev1.ReregisteredReason))
	h.Expect(c.Message).To(
		And(ContainSubstring(`state "insufficient"`), ContainSubstring("c1-admin-kubeconfig"), ContainSubstring("Delete no object")),
	)
}

func TestReregisteredClusterIsNotChanged(t *testing.T) {
	h := forgotten(t)
	before := &hiveext.AgentClusterInstall{}
	h.get("c1", before)
	h.reconcile()
	h.reconcile()
	h.expectUntouched(before)
	h.Expect(conditions.IsTrue(h.controlPlane(), controlplanev1.InstalledCondition)).To(BeTrue(), "the cluster is installed")
	h.Expect(conditions.IsTrue(h.controlPlane(), controlplanev1.AvailableCondition)).To(BeTrue(), "the cluster serves")

	h.setState("adding-hosts", hiveext.ClusterInstalledReason, 100)
	h.reconcile()
	h.expectRegistration("", "")
	h.Expect(h.machines()).To(HaveLen(5), "imported: hosts join again")
}

// Backup tools restore neither status nor owner references.
func TestRestoredClusterThatIsReregisteredIsNotChanged(t *testing.T) {
	for evidence, lose := range map[string]func(h *hub){
		"the ClusterDeployment is stated to be installed": func(h *hub) {
			h.Expect(h.Delete(h.t.Context(), h.published())).To(Succeed())
			h.removeCredentials()
		},
		"the kubeconfig was renewed": func(h *hub) {
			secret := h.published()
			secret.OwnerReferences = nil
			h.Expect(h.Update(h.t.Context(), secret)).To(Succeed())
			h.clearInstalled()
			h.removeCredentials()
		},
		"the credentials were handed over": func(h *hub) {
			h.Expect(h.Delete(h.t.Context(), h.published())).To(Succeed())
			h.clearInstalled()
		},
		"the cluster answers": func(h *hub) {
			h.Expect(h.Delete(h.t.Context(), h.published())).To(Succeed())
			h.clearInstalled()
			h.removeCredentials()
			h.workloads.facts = workload.State{Connected: true}
		},
	} {
		t.Run(evidence, func(t *testing.T) {
			h := forgotten(t)
			h.workloads.facts = workload.State{}
			lose(h)
			cp := h.controlPlane()
			cp.Status = controlplanev1.OpenshiftAssistedControlPlaneStatus{}
			h.Expect(h.Status().Update(t.Context(), cp)).To(Succeed())
			before := &hiveext.AgentClusterInstall{}
			h.get("c1", before)
			h.reconcile()
			h.reconcile()
			h.expectUntouched(before)
		})
	}
}

// removeCredentials removes the credentials from the AgentClusterInstall.
func (h *hub) removeCredentials() {
	h.t.Helper()
	aci := &hiveext.AgentClusterInstall{}
	h.get("c1", aci)
	aci.Spec.ClusterMetadata = nil
	h.Expect(h.Update(h.t.Context(), aci)).To(Succeed())
}

func (h *hub) clearInstalled() {
	h.t.Helper()
	deployment := &hivev1.ClusterDeployment{}
	h.get("c1", deployment)
	deployment.Spec.Installed, deployment.Spec.ClusterMetadata = false, nil
	h.Expect(h.Update(h.t.Context(), deployment)).To(Succeed())
}

func TestClusterDeploymentIsMarkedAsInstalledOnce(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.giveKubeconfig("first")
	h.setState("installing", hiveext.ClusterInstallationInProgressReason, 45)
	h.reconcile()
	deployment := &hivev1.ClusterDeployment{}
	h.get("c1", deployment)
	h.Expect(deployment.Spec.Installed).To(BeFalse(), "not yet")
	was := deployment.Spec.DeepCopy()

	h.install()
	h.get("c1", deployment)
	h.Expect(deployment.Spec.Installed).To(BeTrue())
	h.Expect(deployment.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name).To(
		Equal("c1-admin-kubeconfig"), "Hive's admission requires the reference",
	)
	h.Expect(deployment.Annotations).To(HaveKeyWithValue(assisted.OpenShiftVersionAnnotation, "4.19.3"))
	is := deployment.Spec.DeepCopy()
	is.Installed, is.ClusterMetadata = false, nil
	h.Expect(is).To(Equal(was), "no field of ours is withdrawn")

	version := deployment.ResourceVersion
	h.reconcile()
	h.reconcile()
	h.get("c1", deployment)
	h.Expect(deployment.ResourceVersion).To(Equal(version))
}

func TestUsersOwnKubeconfigIsNoEvidence(t *testing.T) {
	own := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: lab, Name: "cluster1-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: "cluster1"},
		},
	}
	h := newHub(t, append(world(nil), own)...)
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	err := h.Get(t.Context(), client.ObjectKey{Namespace: lab, Name: "c1"}, &hiveext.AgentClusterInstall{})
	h.Expect(apierrors.IsNotFound(err)).To(BeFalse())
}
