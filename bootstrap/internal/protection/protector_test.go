package protection

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Cluster API writes to a new Machine while the protection is written, and the cache shows its write first.
func TestProtectionIsWrittenOnceDespiteForeignWrites(t *testing.T) {
	g := NewWithT(t)
	requests := 0
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, applied runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			requests++
			applied.(metav1.Object).SetResourceVersion("12") //nolint:forcetypeassert // it is unstructured
			return nil
		},
	}).Build()
	clock := testingclock.NewFakeClock(time.Now())
	p := New(c, clock)
	protect := func(version string) (*scope.Scope, int) {
		s := scope.New(&facts.Facts{
			Config:  &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "m"}},
			Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "m", UID: "m", ResourceVersion: version}},
		})
		g.Expect(p.Set(t.Context(), s, true)).To(Succeed())
		return s, requests
	}
	_, sent := protect("10")
	g.Expect(sent).To(Equal(1))
	s, sent := protect("11")
	g.Expect(sent).To(Equal(1), "the cache does not show the protection yet")
	g.Expect(s.Again.Delay()).To(Equal(reconcile.CacheLag))
	_, sent = protect("13")
	g.Expect(sent).To(Equal(2), "another client has removed the protection")
	clock.Step(reconcile.CacheLag)
	_, sent = protect("11")
	g.Expect(sent).To(Equal(3), "the cache is trusted as it is")
}
