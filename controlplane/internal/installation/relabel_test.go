package installation

import (
	"testing"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
)

// The mark of the installation is applied to the relabeled ClusterDeployment. With the former version, the event of
// the relabeling would end the wait for the event of the mark.
func TestRelabelReturnsTheCurrentClusterDeployment(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(hivev1.AddToScheme(scheme)).To(Succeed())
	deployment := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: lab, Name: "c1", Labels: newFacts().Labels(),
	}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(deployment).Build()
	s := scope.New(newFacts())
	s.Begun, s.Deployment = true, deployment
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())

	w := NewMetadataWriter(c, writer.New(c, c, clock.RealClock{}), clock.RealClock{})
	current, err := w.relabel(t.Context(), s)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(current.Annotations).To(HaveKeyWithValue(contract.ClusterUIDAnnotation, "cluster-uid"))
	stored := &hivev1.ClusterDeployment{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(deployment), stored)).To(Succeed())
	g.Expect(current.ResourceVersion).To(Equal(stored.ResourceVersion))
}
