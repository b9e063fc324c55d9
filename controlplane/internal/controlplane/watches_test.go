package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// The API of the bootstrap answers, and Cluster API takes the control plane for initialized, long before the installation is over.
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

// TestWhoseControlPlaneIsReconciled: what happens to a Cluster, or to what says that it is of one, concerns the control
// plane that the Cluster names.
func TestWhoseControlPlaneIsReconciled(t *testing.T) {
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
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "m"}, Spec: clusterv1.MachineSpec{ClusterName: "cluster1"}}
			kubeconfig := kube.MetadataOf(kube.Secret)
			kubeconfig.Namespace, kubeconfig.Name = lab, "cluster1-kubeconfig"
			for what, requests := range map[string][]ctrl.Request{
				"the Cluster":       ofCluster(t.Context(), cluster),
				"a Machine":         h.r.ofMember(t.Context(), machine),
				"its kubeconfig":    h.r.ofSecret(t.Context(), kubeconfig),
				"its connection":    RequestsOf(h.cached.Client)(t.Context(), client.ObjectKeyFromObject(cluster)),
				"another's Machine": append(h.r.ofMember(t.Context(), &clusterv1.Machine{Spec: clusterv1.MachineSpec{ClusterName: "another"}}), tc.wanted...),
			} {
				h.Expect(requests).To(Equal(tc.wanted), what)
			}
		})
	}
}
