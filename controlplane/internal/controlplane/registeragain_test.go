package controlplane

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// registeredWithProxy returns a hub with a registered cluster, on whose objects assisted-service has set its
// finalizers.
func registeredWithProxy(t *testing.T) *hub {
	t.Helper()
	h := newHub(t, world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Config.Proxy = &bootstrapv1.Proxy{HTTPProxy: "http://former.example.com:3128"}
	})...).withTime()
	h.reconcile()
	deployment, install := h.registration()
	deployment.Finalizers, install.Finalizers = []string{
		"agent-install.openshift.io/deprovision",
	}, []string{"agent-install.openshift.io/deprovision"}
	h.Expect(h.Update(t.Context(), deployment)).To(Succeed())
	h.Expect(h.Update(t.Context(), install)).To(Succeed())
	h.setState("insufficient", hiveext.ClusterInstallationNotStartedReason, 0)
	return h
}

func (h *hub) alter(change func(*controlplanev1.OpenshiftAssistedControlPlaneSpec)) {
	h.t.Helper()
	cp := h.controlPlane()
	change(&cp.Spec)
	h.Expect(h.Update(h.t.Context(), cp)).To(Succeed())
}

// deregister acts as assisted-service when a ClusterDeployment is deleted.
func (h *hub) deregister() {
	h.t.Helper()
	deployment, install := h.registration()
	h.Expect(deployment.DeletionTimestamp).NotTo(BeNil(), "the cluster is deregistered")
	h.Expect(h.Delete(h.t.Context(), install)).To(Succeed())
	for _, obj := range []client.Object{install, deployment} {
		h.get("c1", obj)
		obj.SetFinalizers(nil)
		h.Expect(h.Update(h.t.Context(), obj)).To(Succeed())
	}
}

func TestChangeOfImmutableFieldRegistersAgain(t *testing.T) {
	for situation, tc := range map[string]struct {
		change func(*controlplanev1.OpenshiftAssistedControlPlaneSpec)
		field  string
		done   func(*hiveext.AgentClusterInstallSpec) any
		wanted any
	}{
		"no proxy": {
			func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Config.Proxy = nil }, "config.proxy",
			func(s *hiveext.AgentClusterInstallSpec) any { return s.Proxy }, (*hiveext.Proxy)(nil),
		},
		"a single node": {
			func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
				s.Replicas, s.Config.APIVIPs, s.Config.IngressVIPs = ptr.To[int32](1), nil, nil
			}, "replicas",
			func(s *hiveext.AgentClusterInstallSpec) any { return s.ProvisionRequirements.ControlPlaneAgents }, 1,
		},
		"another image of the same version": {
			func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Config.ReleaseImage = otherDigest }, "cpuArchitecture",
			func(s *hiveext.AgentClusterInstallSpec) any { return s.ImageSetRef.Name }, assisted.ClusterImageSetName(lab, "c1", otherDigest),
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h := registeredWithProxy(t)
			_, before := h.registration()
			h.alter(tc.change)
			h.reconcile()
			h.endDeferral()
			h.reconcile()
			installed := conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition)
			h.Expect(installed).To(HaveField("Reason", controlplanev1.WaitingForAssistedServiceReason))
			h.Expect(installed.Message).To(And(ContainSubstring("registered again"), ContainSubstring(tc.field)))
			_, install := h.registration()
			h.Expect(install.Spec).To(Equal(before.Spec), "assisted-service would ignore or refuse some of the changes")
			h.deregister()
			h.reconcile()
			h.reconcile()
			deployment, install := h.registration()
			h.Expect(deployment.DeletionTimestamp).To(BeNil())
			h.Expect(install.UID).To(Equal(before.UID)) // the fake client gives none
			h.Expect(tc.done(&install.Spec)).To(Equal(tc.wanted))
		})
	}
}

// assisted-service reads the ConfigMap with the mirrors when it registers a cluster.
func TestChangedMirrorsAreRegisteredAgain(t *testing.T) {
	mirrors := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "mirrors"}, Data: mirrorOf("former.example.com")}
	h := newHub(t, append(world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Config.ImageRegistryRef = &corev1.LocalObjectReference{Name: mirrors.Name}
	}), mirrors)...).withTime()
	h.reconcile()
	h.setState("insufficient", hiveext.ClusterInstallationNotStartedReason, 0)
	change := func(change func()) {
		h.get(mirrors.Name, mirrors)
		change()
		h.Expect(h.Update(t.Context(), mirrors)).To(Succeed())
		h.reconcile()
		h.endDeferral()
		h.reconcile()
	}
	before, _ := h.registration()
	change(func() { mirrors.Labels = map[string]string{"backup": "true"} })
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.InstalledCondition)).NotTo(ContainSubstring("registered again"))

	deployment, _ := h.registration()
	h.Expect(deployment).To(Equal(before))
	deployment.Finalizers = []string{"agent-install.openshift.io/deprovision"}
	h.Expect(h.Update(t.Context(), deployment)).To(Succeed())
	change(func() { mirrors.Data = mirrorOf("later.example.com") })
	deployment, _ = h.registration()
	h.Expect(deployment.DeletionTimestamp).NotTo(BeNil())
}

// mirroredHub is a hub with a cluster that is registered with the mirrors of ConfigMap mirrors.
func mirroredHub(t *testing.T) *hub {
	t.Helper()
	mirrors := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "mirrors"}, Data: mirrorOf("former.example.com")}
	h := newHub(t, append(world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Config.ImageRegistryRef = &corev1.LocalObjectReference{Name: mirrors.Name}
	}), mirrors)...).withTime()
	h.reconcile()
	return h
}

// changeMirrors changes the content of ConfigMap mirrors.
func (h *hub) changeMirrors(mirror string) {
	h.t.Helper()
	h.setState("insufficient", hiveext.ClusterInstallationNotStartedReason, 0)
	mirrors := &corev1.ConfigMap{}
	h.get("mirrors", mirrors)
	mirrors.Data = mirrorOf(mirror)
	h.Expect(h.Update(h.t.Context(), mirrors)).To(Succeed())
}

// addFinalizers adds the finalizers of assisted-service to the objects of the registration.
func (h *hub) addFinalizers() {
	h.t.Helper()
	deployment, install := h.registration()
	for _, obj := range []client.Object{deployment, install} {
		obj.SetFinalizers([]string{"agent-install.openshift.io/deprovision"})
		h.Expect(h.Update(h.t.Context(), obj)).To(Succeed())
	}
}

// registerAgainFor completes one registration because of other mirrors.
func (h *hub) registerAgainFor(mirror string) {
	h.t.Helper()
	h.addFinalizers()
	h.changeMirrors(mirror)
	h.settle()
	h.deregister()
	h.settle()
	h.addFinalizers()
}

func (h *hub) step(by time.Duration) {
	now := h.clock.now
	h.clock.now = func() time.Time { return now().Add(by) }
}

// Two clients that overwrite the ConfigMap in turn would deregister the cluster with each write.
func TestClusterIsRegisteredAgainForMirrorsAtLimitedRate(t *testing.T) {
	h := mirroredHub(t)
	h.registerAgainFor("later.example.com")

	h.changeMirrors("former.example.com")
	h.settle()
	deployment, install := h.registration()
	h.Expect(deployment.DeletionTimestamp).To(BeNil())
	h.Expect(install.Spec.HoldInstallation).To(BeTrue(), "the installation does not begin with outdated mirrors")
	h.Expect(h.installedCondition().Message).To(ContainSubstring("changed again after a registration"))

	h.changeMirrors("later.example.com")
	h.settle()
	_, install = h.registration()
	h.Expect(install.Spec.HoldInstallation).To(BeFalse(), "the registered content is back")

	h.changeMirrors("former.example.com")
	h.step(5 * time.Minute)
	h.settle()
	deployment, _ = h.registration()
	h.Expect(deployment.DeletionTimestamp).NotTo(BeNil())
}

func TestHangingDeregistrationForMirrorsIsReportedAndCountsOnce(t *testing.T) {
	h := mirroredHub(t)
	h.addFinalizers()
	h.changeMirrors("later.example.com")
	h.settle()
	deployment, install := h.registration()
	h.Expect(h.Delete(t.Context(), install)).To(Succeed())
	h.finishDeletion("c1", deployment)
	for range 2 {
		h.step(3 * time.Minute)
		h.settle()
		h.Expect(*h.installedCondition()).To(And(
			HaveField("Reason", controlplanev1.AssistedServiceNotRespondingReason),
			HaveField("Message", ContainSubstring("AgentClusterInstall c1"))))
		h.get("c1", install)
		h.Expect(install.Spec.HoldInstallation).To(BeFalse(), "an object that is being deleted")
	}
	h.Expect(h.r.registrar.Recreations.Left(reconcile.Key("", install))).To(BeZero(), "one change counts once")
}

// The ClusterDeployment is deleted at once if assisted-service has not set its finalizer yet.
func TestRestOfDeletedRegistrationIsDeletedWithoutDelay(t *testing.T) {
	h := mirroredHub(t)
	_, before := h.registration()
	h.changeMirrors("later.example.com")
	for range 3 {
		h.settle()
	}
	deployment, install := h.registration()
	h.Expect(deployment.DeletionTimestamp).To(BeNil())
	h.Expect(install.Spec.HoldInstallation).To(BeFalse())
	h.Expect(install.Annotations[bootstrapv1.MirrorsDigestAnnotation]).NotTo(Equal(before.Annotations[bootstrapv1.MirrorsDigestAnnotation]))
}

func TestRegistrationThatStaleCacheShowsIsNotHeld(t *testing.T) {
	h := mirroredHub(t)
	h.addFinalizers()
	h.changeMirrors("later.example.com")
	deployment, _ := h.registration()
	now := time.Now()
	h.r.writer.Recent = reconcile.NewRecentWrites(&testClock{now: func() time.Time { return now }})
	h.cached.Client = kubetest.StaleCacheOf(h.cached.Client, deployment, (*hivev1.ClusterDeployment).DeepCopyInto)
	h.settle()
	deployment, install := h.registration()
	h.Expect(deployment.DeletionTimestamp).NotTo(BeNil())
	h.Expect(install.Spec.HoldInstallation).To(BeFalse())
	h.Expect(h.installedCondition().Message).NotTo(ContainSubstring("changed again after a registration"))
}

// undeletingClient fails to delete objects.
type undeletingClient struct{ client.Client }

func (undeletingClient) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return apierrors.NewTimeoutError("no answer", 1)
}

func TestFailedDeletionIsNoRegistration(t *testing.T) {
	h := mirroredHub(t)
	h.addFinalizers()
	h.changeMirrors("later.example.com")
	cached := h.cached.Client
	h.cached.Client = undeletingClient{cached}
	_, err := h.r.Reconcile(t.Context(), h.request())
	h.Expect(err).To(MatchError(ContainSubstring("no answer")))
	h.cached.Client = cached
	h.settle()
	deployment, install := h.registration()
	h.Expect(deployment.DeletionTimestamp).NotTo(BeNil())
	h.Expect(h.r.registrar.Recreations.Left(reconcile.Key("", install))).To(BeNumerically("<=", 5*time.Minute))
}

// A correction that needs no registration does not wait for the next registration because of mirrors.
func TestOtherCorrectionsAreAppliedWhileRegistrationIsDelayed(t *testing.T) {
	h := mirroredHub(t)
	h.registerAgainFor("later.example.com")
	_, registered := h.registration()
	h.changeMirrors("former.example.com")
	h.settle()
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ corrected"
	h.alter(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Config.SSHAuthorizedKey = key })
	h.settle()
	deployment, install := h.registration()
	h.Expect(deployment.DeletionTimestamp).To(BeNil())
	h.Expect(install.Spec.SSHPublicKey).To(Equal(key))
	h.Expect(install.Spec.HoldInstallation).To(BeTrue())
	read := registered.Annotations[bootstrapv1.MirrorsDigestAnnotation]
	h.Expect(install.Annotations).To(HaveKeyWithValue(bootstrapv1.MirrorsDigestAnnotation, read), "assisted-service has read this content")
	h.Expect(h.installedCondition().Message).To(ContainSubstring("changed again after a registration"))
	h.writes = nil
	h.settle()
	h.Expect(h.writes).NotTo(ContainElements("hold"))
	h.Expect(h.writes).NotTo(ContainElements("apply"), "nothing changed")

	h.changeMirrors("later.example.com")
	h.settle()
	_, install = h.registration()
	h.Expect(install.Spec.HoldInstallation).To(BeFalse(), "the registered content is back")
}

// The refusal of assisted-service must not come only after the cluster was deregistered.
func TestRefusedRegistrationDeregistersNothing(t *testing.T) {
	for kind, tc := range map[string]struct {
		failing string
		change  func(*controlplanev1.OpenshiftAssistedControlPlaneSpec)
	}{
		"AgentClusterInstall": {`"imageSetRef"`, func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Config.Proxy = nil }},
		"ClusterDeployment": {
			`"kind":"ClusterDeployment"`, func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Config.ClusterName = "renamed" },
		},
	} {
		t.Run(kind, func(t *testing.T) {
			h := registeredWithProxy(t)
			h.applyFails, h.failing = undeclared(kind, "spec.some"), tc.failing
			h.alter(tc.change)
			h.reconcile()
			h.endDeferral()
			h.Expect(h.reconcile().RequeueAfter).To(BeNumerically(">", 0))
			deployment, install := h.registration()
			h.Expect(deployment.DeletionTimestamp).To(BeNil())
			h.Expect(install.DeletionTimestamp).To(BeNil())
			installed := conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition)
			h.Expect(installed.Reason).To(Equal(controlplanev1.InstallationRejectedReason))
			h.Expect(installed.Message).To(ContainSubstring(kind + " c1 was refused"))
			h.applyFails = nil
			h.step(reconcile.RefusedDelay)
			h.reconcile()
			deployment, _ = h.registration()
			h.Expect(deployment.DeletionTimestamp).NotTo(BeNil())
		})
	}
}

// Hive's admission webhook refuses a change of the name of a ClusterDeployment.
func TestChangedNameIsRegisteredAgain(t *testing.T) {
	h := registeredWithProxy(t)
	h.alter(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Config.ClusterName = "renamed" })
	h.reconcile()
	h.endDeferral()
	h.reconcile()
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.InstalledCondition)).To(
		And(ContainSubstring("registered again"), ContainSubstring("config.clusterName")),
	)
	deployment, _ := h.registration()
	h.Expect(deployment.Spec.ClusterName).To(Equal("cluster1"), "an update would be refused")
	h.deregister()
	h.reconcile()
	h.reconcile()
	deployment, _ = h.registration()
	h.Expect(deployment.DeletionTimestamp).To(BeNil())
	h.Expect(deployment.Spec.ClusterName).To(Equal("renamed"))
}

// A cluster is also registered again if assisted-service has not set its finalizers on the objects.
func TestRegistrationWithoutFinalizersIsRegisteredAgain(t *testing.T) {
	h := newHub(t, world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Config.Proxy = &bootstrapv1.Proxy{HTTPProxy: "http://former.example.com:3128"}
	})...).withTime()
	h.reconcile()
	h.setState("insufficient", hiveext.ClusterInstallationNotStartedReason, 0)
	h.alter(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		s.Config.Proxy, s.Config.ReleaseImage = nil, otherDigest
	})
	for range 4 {
		h.reconcile()
	}
	_, install := h.registration()
	h.Expect(install.Spec.Proxy).To(BeNil())
	h.Expect(install.Spec.ImageSetRef.Name).NotTo(BeEmpty())
}

func TestStartedInstallationIsNotRegisteredAgain(t *testing.T) {
	h := registeredWithProxy(t)
	before := h.controlPlane()
	late := &hiveext.AgentClusterInstall{}
	h.get("c1", late)
	h.alter(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Config.Proxy = nil })
	h.setState("preparing-for-installation", hiveext.ClusterInstallationInProgressReason, 0)
	cached := h.cached.Client
	h.cached.Client = kubetest.StaleCacheOf(cached, late, (*hiveext.AgentClusterInstall).DeepCopyInto)
	h.reconcile()
	deployment := &hivev1.ClusterDeployment{}
	h.get("c1", deployment)
	h.Expect(deployment.DeletionTimestamp).To(BeNil(), "the cache lags behind the API server")

	h.setState("insufficient", hiveext.ClusterInstallationNotStartedReason, 0)
	h.cached.Client = kubetest.StaleCacheOf(cached, before, (*controlplanev1.OpenshiftAssistedControlPlane).DeepCopyInto)
	h.reconcile()
	h.get("c1", deployment)
	h.Expect(deployment.DeletionTimestamp).To(BeNil(), "the cache of the control plane lags as well")

	h.cached.Client = cached
	h.reconcile()
	h.get("c1", deployment)
	h.Expect(deployment.DeletionTimestamp).NotTo(BeNil(), "no cache lags any more")
}

// The AgentClusterInstall has no status, as after a restore. Its installation may be running.
func TestClusterOfUnknownStateIsNotRegisteredAgain(t *testing.T) {
	h := registeredWithProxy(t)
	deployment, install := h.registration()
	install.Status = hiveext.AgentClusterInstallStatus{}
	h.Expect(h.Status().Update(t.Context(), install)).To(Succeed())
	h.alter(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Config.Proxy = nil })
	h.reconcile()
	h.endDeferral()
	h.reconcile()
	kept, same := h.registration()
	h.Expect(kept.DeletionTimestamp).To(Equal(deployment.DeletionTimestamp))
	h.Expect(same.Spec.Proxy).To(Equal(install.Spec.Proxy))
	h.Expect(conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition).Message).To(
		ContainSubstring("whether an installation was started is not known"),
	)
}
