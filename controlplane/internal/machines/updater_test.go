package machines

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/sample"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// The kubelets start minutes before the cluster is installed.
func TestMachineGetsVersionAndHookWithOneRequest(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	f := sample.Facts(nil)
	f.Workload.Nodes = []workload.Node{{Name: "n0", KubeletVersion: "v1.32.6"}}
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.ControlPlane.Namespace, Name: "c1-0"}}
	requests := 0
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(m).Build(), interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			requests++
			return c.Apply(ctx, o, options...)
		},
	})
	clock := testingclock.NewFakeClock(time.Now())
	updater := NewUpdater(c, writer.New(c, c, clock))
	sync := func(node string) int {
		clock.Step(reconcile.CacheLag)
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(m), m)).To(Succeed())
		m.Status.NodeRef.Name = node
		f.Machines = []*clusterv1.Machine{m}
		_, err := updater.Sync(t.Context(), scope.New(f))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(m), m)).To(Succeed())
		return requests
	}
	before := sync("")
	g.Expect(sync("n0")).To(Equal(before), "the cluster is being installed")
	f.Phase = controlplanev1.InstallationInstalled
	g.Expect(sync("n0")).To(Equal(before + 1))
	g.Expect(m.Spec.Version).To(Equal("v1.32.6"))
	g.Expect(m.Annotations).To(HaveKey(controlplanev1.EtcdMemberHookAnnotation))
}

// The delay grows with each refusal of a request. It is the shortest one again after the API server has accepted the
// request.
func TestAcceptedUpdateEndsDelayOfRefusedUpdate(t *testing.T) {
	g := NewWithT(t)
	var answer error
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return answer
		},
	})
	clock := testingclock.NewFakeClock(time.Now())
	updater := NewUpdater(c, writer.New(c, c, clock))
	delay := func(of error) time.Duration {
		answer = of
		f := sample.Facts(nil)
		f.Machines = []*clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Namespace: f.ControlPlane.Namespace, Name: "c1-0"}}}
		s := scope.New(f)
		_, err := updater.Sync(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		return s.Again.Delay()
	}
	refusal := apierrors.NewBadRequest("no")
	g.Expect(delay(refusal)).To(Equal(reconcile.RefusedDelay))
	clock.Step(reconcile.RefusedDelay)
	g.Expect(delay(refusal)).To(Equal(2 * reconcile.RefusedDelay))
	g.Expect(delay(nil)).To(BeZero())
	clock.Step(reconcile.CacheLag)
	g.Expect(delay(refusal)).To(Equal(reconcile.RefusedDelay))
}
