package objects

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

func TestIdentify(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(configv1.Install(scheme)).To(Succeed())
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: "id"}}
	infrastructure := &configv1.Infrastructure{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
		Status:     configv1.InfrastructureStatus{InfrastructureName: "lab-x7k2p"},
	}
	_, err := Identify(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(version).Build())
	g.Expect(err).To(MatchError(ContainSubstring("Infrastructure")))
	identity, err := Identify(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(version, infrastructure).Build())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(identity).To(Equal(workload.Identity{ClusterID: "id", InfraID: "lab-x7k2p"}))
}
