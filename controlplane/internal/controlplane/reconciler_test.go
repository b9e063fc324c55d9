package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/machines"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

func TestFirstReconcileCreatesAllObjects(t *testing.T) {
	h := newHub(t, world(nil)...)
	h.reconcile()

	imageSet := &hivev1.ClusterImageSet{}
	h.Expect(h.Get(t.Context(), client.ObjectKey{Name: assisted.ClusterImageSetName(lab, "c1", digest)}, imageSet)).To(Succeed())
	h.Expect(imageSet.Spec.ReleaseImage).To(Equal(digest))
	deployment := &hivev1.ClusterDeployment{}
	h.get("c1", deployment)
	h.Expect(deployment.OwnerReferences).To(BeEmpty(), "the garbage collector never deregisters a cluster")
	h.Expect(deployment.Annotations).To(HaveKeyWithValue(assisted.OpenShiftVersionAnnotation, "4.19.3"))
	aci := &hiveext.AgentClusterInstall{}
	h.get("c1", aci)
	h.Expect(aci.OwnerReferences).To(BeEmpty())
	h.Expect(aci.Spec.ImageSetRef.Name).To(Equal(imageSet.Name))

	machines := h.machines()
	h.Expect(machines).To(HaveLen(3))
	domains := map[string]int{}
	for _, m := range machines {
		domains[m.Spec.FailureDomain]++
		h.Expect(m.Spec.Version).To(BeEmpty(), "its Kubernetes version is not known")
		h.Expect(metav1.GetControllerOf(&m).Name).To(Equal("c1"))
		h.Expect(m.Labels).To(HaveKeyWithValue(clusterv1.MachineControlPlaneLabel, ""))
		h.get(m.Name, &bootstrapv1.OpenshiftAssistedConfig{})
		infra := &unstructured.Unstructured{}
		infra.SetGroupVersionKind(infraGV.WithKind("Metal3Machine"))
		h.get(m.Name, infra)
		h.Expect(infra.GetAnnotations()).To(HaveKeyWithValue(clusterv1.TemplateClonedFromNameAnnotation, "hosts"))
		h.Expect(infra.GetLabels()).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "cluster1"))
	}
	h.Expect(domains).To(Equal(map[string]int{"rack1": 2, "rack2": 1}))
	h.Expect(h.controlPlane().Finalizers).To(ConsistOf(controlplanev1.OpenshiftAssistedControlPlaneFinalizer))
	h.Expect(conditions.IsTrue(h.controlPlane(), controlplanev1.ReleaseImageResolvedCondition)).To(BeTrue(), "at once")
}

func TestReconcileWithoutChangesWritesNothing(t *testing.T) {
	h := newHub(t, world(nil)...)
	h.reconcile()
	h.withTime()
	h.reconcile() // observes the Machines, and marks them UpToDate
	h.reconcile()
	h.writes = nil
	h.reconcile()
	h.Expect(h.writes).To(BeEmpty())
}

func TestWriteThatTheCacheLacksIsNotRepeated(t *testing.T) {
	h := newHub(t, world(nil)...)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	cp := h.controlPlane()
	h.reconcile()
	now = now.Add(reconcile.CacheLag)
	h.r.writer.Recent.Record(reconcile.Key("", cp), h.controlPlane().ResourceVersion)
	h.writes = nil
	now = now.Add(reconcile.CacheLag / 4)
	h.Expect(h.reconcile().RequeueAfter).To(Equal(reconcile.CacheLag * 3 / 4))
	h.Expect(h.writes).To(BeEmpty())
}

func TestMissingDependencyIsReported(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*controlplanev1.OpenshiftAssistedControlPlane)
		world   func([]client.Object) []client.Object
		reason  string
		message string
	}{
		"no Cluster": {world: without[*clusterv1.Cluster], reason: controlplanev1.WaitingForClusterReason, message: "Cluster"},
		"infrastructure not provisioned": {
			world:  altered(func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = nil }),
			reason: controlplanev1.WaitingForClusterInfrastructureReason, message: "infrastructure",
		},
		"no endpoint": {
			world:  altered(func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{} }),
			reason: controlplanev1.WaitingForControlPlaneEndpointReason, message: "controlPlaneEndpoint",
		},
		"too old": {
			change: func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Spec.DistributionVersion = "4.13.9" },
			reason: controlplanev1.UnsupportedVersionReason, message: "4.14.0 or newer",
		},
		"no pull secret": {world: without[*corev1.Secret], reason: controlplanev1.PullSecretMissingReason, message: "Secret pull does not exist"},
		"pull secret without its key": {
			world:  altered(func(s *corev1.Secret) { s.Data = nil }),
			reason: controlplanev1.PullSecretMissingReason, message: "no key .dockerconfigjson",
		},
		"no ClusterImageSet": {change: func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.Config.ReleaseImage = ""
			cp.Spec.Config.ClusterImageSetRef = &controlplanev1.ClusterImageSetReference{Name: "mirror"}
		}, reason: controlplanev1.ClusterImageSetMissingReason, message: "ClusterImageSet mirror does not exist"},
		"no manifests": {change: func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.Config.ManifestsConfigMapRefs = []corev1.LocalObjectReference{{Name: "extra"}}
		}, reason: controlplanev1.ManifestsMissingReason, message: "ConfigMap extra"},
		"an override that is no JSON": {
			change: func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Spec.Config.InstallConfigOverride = "{a" },
			reason: controlplanev1.InvalidConfigurationReason, message: "not a JSON object",
		},
		"a foreign ClusterDeployment": {
			world:  with(&hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "c1"}}),
			reason: controlplanev1.InstallationNotOursReason, message: "was not created for this control plane",
		},
		"no infra template": {
			world:   without[*unstructured.Unstructured],
			reason:  controlplanev1.InfraTemplateMissingReason,
			message: "Metal3MachineTemplate hosts does not exist",
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := world(tc.change)
			if tc.world != nil {
				objects = tc.world(objects)
			}
			h := newHub(t, objects...)
			h.reconcile()
			c := conditions.Get(h.controlPlane(), controlplanev1.MachinesCreatedCondition)
			h.Expect(c.Status).To(Equal(metav1.ConditionFalse))
			h.Expect(c.Reason).To(Equal(tc.reason))
			h.Expect(c.Message).To(Equal("see the condition Installed"))
			h.Expect(h.condition(controlplanev1.InstalledCondition)).To(
				And(HaveField("Reason", tc.reason), HaveField("Message", ContainSubstring(tc.message))),
			)
			h.Expect(h.machines()).To(BeEmpty())
		})
	}
}

func TestDayOneFromStartToAvailable(t *testing.T) {
	h := newHub(t, world(nil)...)
	h.withTime()
	h.reconcile()
	h.reconcile()
	h.Expect(h.controlPlane().Status.Version).To(BeEmpty(), "without spec.version no MachineSet waits for it")
	h.Expect(h.controlPlane().Status.UpToDateReplicas).To(HaveValue(BeEquivalentTo(3)))

	h.chooseHosts()
	h.setState("installing", hiveext.ClusterInstallationInProgressReason, 45)
	h.giveKubeconfig("first")
	h.reconcile()
	cp := h.controlPlane()
	h.Expect(cp.Status.Installation.Progress).To(Equal("Installing 40%"))
	installed := conditions.Get(cp, controlplanev1.InstalledCondition)
	h.Expect(installed.Reason).To(Equal(controlplanev1.InstallingReason))
	h.Expect(installed.Message).To(And(ContainSubstring("https://svc/v2/events?cluster_id=1"), Not(ContainSubstring("secret"))))
	h.Expect(cp.Status.Initialization.ControlPlaneInitialized).To(BeNil(), "the kubeconfig alone does not initialize")
	published := &corev1.Secret{}
	h.get("cluster1-kubeconfig", published)
	h.Expect(published.Data).To(HaveKeyWithValue("value", kubeconfigOf("first")))
	h.Expect(published.Type).To(Equal(clusterv1.ClusterSecretType))

	h.giveKubeconfig("second")
	h.reconcile()
	h.get("cluster1-kubeconfig", published)
	h.Expect(published.Data).To(HaveKeyWithValue("value", kubeconfigOf("second")))

	h.workloads.facts = workload.State{
		Connected: true, LastSuccess: time.Now(), KubernetesVersion: "v1.32.6", Unhealthy: []string{"ClusterOperator etcd is not available"},
	}
	h.setState("adding-hosts", hiveext.ClusterInstalledReason, 100)
	h.reconcile()
	cp = h.controlPlane()
	h.Expect(cp.Status.Initialization.ControlPlaneInitialized).To(HaveValue(BeTrue()))
	h.Expect(conditions.IsTrue(cp, controlplanev1.InstalledCondition)).To(BeTrue())
	h.Expect(conditions.IsFalse(cp, controlplanev1.AvailableCondition)).To(BeTrue())
	for _, m := range h.machines() {
		infra := &unstructured.Unstructured{}
		infra.SetGroupVersionKind(infraGV.WithKind("Metal3Machine"))
		h.get(m.Name, infra)
		h.Expect(infra.GetAnnotations()).To(HaveKey(machines.KubeconfigPublishedAnnotation), "touched: it has no Node yet")
	}

	h.workloads.facts = workload.State{Connected: true, LastSuccess: time.Now(), OpenShiftVersion: "4.19.3", KubernetesVersion: "v1.32.6"}
	h.reconcile()
	cp = h.controlPlane()
	h.Expect(conditions.IsTrue(cp, controlplanev1.AvailableCondition)).To(BeTrue())
	h.Expect(cp.Status.Versions).To(Equal([]controlplanev1.StatusVersion{{Version: "v1.32.6", Replicas: ptr.To[int32](3)}}))
	h.Expect(cp.Status.DistributionVersion).To(Equal("4.19.3"))

	h.workloads.facts = workload.State{LastSuccess: time.Now()}
	h.reconcile()
	h.Expect(
		conditions.IsTrue(h.controlPlane(), controlplanev1.AvailableCondition),
	).To(BeTrue(), "a short outage does not change the condition")
	h.restartAt(time.Now().Add(-time.Hour))
	h.workloads.facts = workload.State{LastSuccess: time.Now().Add(-workload.GracePeriod)}
	h.reconcile()
	c := conditions.Get(h.controlPlane(), controlplanev1.AvailableCondition)
	h.Expect(c.Status).To(Equal(metav1.ConditionUnknown))
	h.Expect(c.Reason).To(Equal(controlplanev1.ConnectionDownReason))
}

func TestStartedInstallationIsFrozen(t *testing.T) {
	h := newHub(t, world(nil)...)
	h.reconcile()
	h.setState("installing", hiveext.ClusterInstallationInProgressReason, 10)
	cp := h.controlPlane()
	cp.Spec.Config.SSHAuthorizedKey = "ssh-ed25519 new"
	h.Expect(h.Update(t.Context(), cp)).To(Succeed())
	h.reconcile()
	aci := &hiveext.AgentClusterInstall{}
	h.get("c1", aci)
	h.Expect(aci.Spec.SSHPublicKey).To(BeEmpty())
}

func TestLostInstallationIsNotStartedAgain(t *testing.T) {
	h := newHub(t, world(nil)...)
	h.reconcile()
	h.setState("adding-hosts", hiveext.ClusterInstalledReason, 100)
	h.withTime()
	h.reconcile()
	h.Expect(h.Delete(t.Context(), &hiveext.AgentClusterInstall{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "c1"}})).To(Succeed())
	h.reconcile()
	err := h.Get(t.Context(), client.ObjectKey{Namespace: lab, Name: "c1"}, &hiveext.AgentClusterInstall{})
	h.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	h.Expect(h.controlPlane().Status.Installation.Phase).To(Equal(controlplanev1.InstallationInstalled))
}

func TestPausedControlPlaneWritesOnlyTheCondition(t *testing.T) {
	h := newHub(t, altered(func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) })(world(nil))...)
	h.reconcile()
	h.Expect(h.writes).To(ConsistOf("patch status c1"))
	h.Expect(conditions.IsTrue(h.controlPlane(), clusterv1.PausedCondition)).To(BeTrue())
}

func TestOKDGetsItsOwnPlaceholderPullSecret(t *testing.T) {
	h := newHub(t, world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.DistributionVersion, cp.Spec.Config.PullSecretRef = "4.19.0-okd-scos.5", nil
	})...)
	h.reconcile()
	secret := &corev1.Secret{}
	h.get("c1-placeholder-pull-secret", secret)
	h.Expect(secret.Type).To(Equal(corev1.SecretTypeDockerConfigJson))
	deployment := &hivev1.ClusterDeployment{}
	h.get("c1", deployment)
	h.Expect(deployment.Spec.PullSecretRef.Name).To(Equal(secret.Name))
	h.Expect(h.controlPlane().Spec.Config.PullSecretRef).To(BeNil(), "the user's spec is not changed")
}

// without drops the objects of a type, with adds an object, altered changes the objects of a type.
func without[T client.Object](objects []client.Object) []client.Object {
	var kept []client.Object
	for _, obj := range objects {
		if _, drop := obj.(T); !drop {
			kept = append(kept, obj)
		}
	}
	return kept
}

func with(obj client.Object) func([]client.Object) []client.Object {
	return func(objects []client.Object) []client.Object { return append(objects, obj) }
}

func altered[T client.Object](change func(T)) func([]client.Object) []client.Object {
	return func(objects []client.Object) []client.Object {
		for _, obj := range objects {
			if typed, ok := obj.(T); ok {
				change(typed)
			}
		}
		return objects
	}
}
