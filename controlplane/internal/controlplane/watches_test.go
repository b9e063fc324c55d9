package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
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
