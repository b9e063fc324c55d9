package writer

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/sample"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// An assisted-service from before August 2026 drops spec.ntpSources when it adds its finalizer, and keeps the annotation. The
// cached type has no field for the servers: only the managed fields show the loss.
func TestDroppedNTPSourcesAreAppliedAgain(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(hiveext.AddToScheme(scheme)).To(Succeed())
	requests := 0
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			requests++
			return nil
		},
	}).Build()
	w, s := New(c, c, clock.RealClock{}), scope.New(sample.Facts(nil))
	desired := func() *hiveext.AgentClusterInstall {
		return &hiveext.AgentClusterInstall{ObjectMeta: metav1.ObjectMeta{
			Namespace: "lab", Name: "c1", Annotations: map[string]string{assisted.NTPSourcesAnnotation: "ntp.example.com"},
		}}
	}
	observed := func(version, ofSpec string) *hiveext.AgentClusterInstall {
		install := desired()
		install.ResourceVersion = version
		install.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: string(FieldOwner), Operation: metav1.ManagedFieldsOperationApply, APIVersion: hiveext.GroupVersion.String(),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + assisted.NTPSourcesAnnotation +
				`":{}}},"f:spec":{` + ofSpec + `"f:clusterDeploymentRef":{},"f:networking":{},"f:provisionRequirements":{"f:controlPlaneAgents":{}}}}`),
		}}
		return install
	}
	g.Expect(w.ApplyChecked(t.Context(), s, desired(), nil)).To(Succeed())
	g.Expect(requests).To(Equal(1))
	g.Expect(w.ApplyChecked(t.Context(), s, desired(), observed("1", `"f:ntpSources":{},`))).To(Succeed())
	g.Expect(requests).To(Equal(1), "the object has the servers")
	g.Expect(w.ApplyChecked(t.Context(), s, desired(), observed("2", ""))).To(Succeed())
	g.Expect(requests).To(Equal(2), "the servers were dropped")
}
