package controlplane

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
)

// During the installation the API of the bootstrap host answers. Cluster API treats the control plane as
// initialized long before the installation ends.
func TestInstalledBy(t *testing.T) {
	for phase, installed := range map[controlplanev1.InstallationPhase]bool{
		"":                                    false,
		controlplanev1.InstallationFinalizing: false,
		controlplanev1.InstallationInstalled:  true,
	} {
		t.Run(string(phase), func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(controlplanev1.AddToScheme(scheme)).To(Succeed())
			cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "cp"}}
			cp.Status.Installation.Phase = phase
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "cluster1"}}
			cluster.Spec.ControlPlaneRef.Name = "cp"
			cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
			is := InstalledBy(fake.NewClientBuilder().WithScheme(scheme).WithObjects(cp).Build())
			g.Expect(is(t.Context(), cluster)).To(Equal(installed))
			cluster.Spec.ControlPlaneRef.Name = "another"
			g.Expect(is(t.Context(), cluster)).To(BeFalse())
		})
	}
}

// An event of a Cluster, or of an object that references a Cluster, reconciles the control plane of the
// Cluster.
func TestEventsReconcileTheControlPlaneOfTheirCluster(t *testing.T) {
	ours := clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: facts.ControlPlaneKind, Name: "cp"}
	theirs := ours
	theirs.APIGroup = "controlplane.example.org"
	kubeadm := ours
	kubeadm.Kind = "KubeadmControlPlane"
	cp := []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: lab, Name: "cp"}}}
	for situation, tc := range map[string]struct {
		ref    clusterv1.ContractVersionedObjectReference
		wanted []ctrl.Request
	}{
		"ours":                            {ours, cp},
		"of the same kind of another API": {theirs, nil},
		"of another kind":                 {kubeadm, nil},
		"none":                            {clusterv1.ContractVersionedObjectReference{}, nil},
	} {
		t.Run(situation, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "cluster1"}}
			cluster.Spec.ControlPlaneRef = tc.ref
			h := newHub(t, cluster)
			machine := &clusterv1.Machine{
				ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "m"}, Spec: clusterv1.MachineSpec{ClusterName: "cluster1"},
			}
			kubeconfig := kube.MetadataOf(kube.Secret)
			kubeconfig.Namespace, kubeconfig.Name = lab, "cluster1-kubeconfig"
			for what, requests := range map[string][]ctrl.Request{
				"the Cluster":    ofCluster(t.Context(), cluster),
				"a Machine":      h.r.ofMember(t.Context(), machine),
				"its kubeconfig": h.r.ofSecret(t.Context(), kubeconfig),
				"its connection": RequestsOf(h.cached.Client)(t.Context(), client.ObjectKeyFromObject(cluster)),
				"a Machine of another Cluster": append(h.r.ofMember(t.Context(), &clusterv1.Machine{
					Spec: clusterv1.MachineSpec{ClusterName: "another"},
				}), tc.wanted...),
			} {
				h.Expect(requests).To(Equal(tc.wanted), what)
			}
		})
	}
}

// Without the watch of a kind, the controller observes changes only at the next resync of the cache, hours
// later.
func TestChangesOfEachKindReconcileTheControlPlane(t *testing.T) {
	h := newHub(t, world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Config.ManifestsConfigMapRefs = []corev1.LocalObjectReference{{Name: "manifests"}}
	})...)
	w, err := kubetest.NewWatches(t.Context(), h.Client, func(ctx context.Context, mgr manager.Manager, options controller.Options) error {
		return h.r.SetupWithManager(ctx, mgr, options, cluster.NewClusters(cluster.Options{}))
	})
	h.Expect(err).NotTo(HaveOccurred())
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: lab, Name: name} }
	template, reboot := infraTemplate(), &unstructured.Unstructured{}
	reboot.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "Metal3Remediation",
	})
	reboot.SetNamespace(lab)
	reboot.SetName("m")
	h.Expect(h.Create(t.Context(), &clusterv1.Machine{
		ObjectMeta: named("m"), Spec: clusterv1.MachineSpec{ClusterName: "cluster1"},
	})).To(Succeed())
	h.Expect(h.r.creator.Watch(template)).To(Succeed())
	h.Expect(h.r.trackReboots(reboot)).To(Succeed())

	manifests, kubeconfig := kube.MetadataOf(kube.ConfigMap), kube.MetadataOf(kube.Secret)
	manifests.ObjectMeta, kubeconfig.ObjectMeta = named("manifests"), named("cluster1-kubeconfig")
	agent := &aiv1beta1.Agent{ObjectMeta: named("a")}
	agent.Spec.ClusterDeploymentName = &aiv1beta1.ClusterReference{Namespace: lab, Name: "c1"}
	imageSet := &hivev1.ClusterImageSet{
		ObjectMeta: metav1.ObjectMeta{Name: "set", Annotations: map[string]string{facts.OwnerAnnotation: lab + "/c1"}},
	}
	for _, obj := range []client.Object{
		controlPlane(nil), newCluster(), manifests, kubeconfig, agent, imageSet, template, reboot,
		&clusterv1.Machine{ObjectMeta: named("m"), Spec: clusterv1.MachineSpec{ClusterName: "cluster1"}},
		&clusterv1.MachineDeployment{ObjectMeta: named("d"), Spec: clusterv1.MachineDeploymentSpec{ClusterName: "cluster1"}},
		&clusterv1.MachineSet{ObjectMeta: named("s"), Spec: clusterv1.MachineSetSpec{ClusterName: "cluster1"}},
		&clusterv1.MachineDrainRule{ObjectMeta: named("c1" + desired.DrainRuleSuffix)},
		&hivev1.ClusterDeployment{ObjectMeta: named("c1")},
		&hiveext.AgentClusterInstall{ObjectMeta: named("c1")},
	} {
		h.Eventually(func() ([]ctrl.Request, error) { return w.Created(obj) }).WithTimeout(10*time.Second).
			Should(ContainElement(ctrl.Request{NamespacedName: client.ObjectKey{Namespace: lab, Name: "c1"}}), "%T %s", obj, obj.GetName())
	}
	h.Expect(w.Kinds()).To(ConsistOf("OpenshiftAssistedControlPlane", "Cluster", "ConfigMap", "Secret", "Agent", "ClusterImageSet",
		"Metal3MachineTemplate", "Metal3Remediation",
		"Machine", "MachineDeployment", "MachineSet", "MachineDrainRule", "ClusterDeployment", "AgentClusterInstall"))
}
