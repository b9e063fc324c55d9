package binding

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/prerequisites"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/sample"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
)

// The cache still shows the Metal3Machine whose metadata were deleted.
func TestMissingMetadataOfAHostAreNamed(t *testing.T) {
	g, scheme := NewWithT(t), runtime.NewScheme()
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	b := New(writer.New(c, c, clock.RealClock{}), prerequisites.New(c), clock.RealClock{})
	infraMachine := sample.Metal3Machine("live-iso")
	g.Expect(unstructured.SetNestedField(infraMachine.Object, "m-metadata", "status", "metaData", "name")).To(Succeed())
	s := scope.New(&facts.Facts{Config: &bootstrapv1.OpenshiftAssistedConfig{}, InfraMachine: infraMachine})
	_, err := b.metal3Metadata(t.Context(), s)
	g.Expect(err).To(MatchError(And(ContainSubstring("m-metadata"), Not(ContainSubstring("%!")))))
}
