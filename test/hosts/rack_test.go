package hosts

import (
	"context"
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/models"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// TestRackOnRealAPIServers tests what fake clients cannot: the watches, the schemas and the order of events of a
// real hub and a real workload cluster.
func TestRackOnRealAPIServers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts API servers")
	}
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(3 * patience)
	e, err := env.Start(t.Context(), env.Options{NoManagers: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(e.Stop)
	workload, err := e.NewWorkloadCluster(t.Context(), "c1")
	g.Expect(err).NotTo(HaveOccurred())
	opened, err := client.NewWithWatch(workload.Config(), client.Options{Scheme: e.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	service := newScript()
	rack, err := New(e.Config(), Options{
		Service:  service,
		Workload: func(context.Context, string, string) (client.Client, error) { return opened, nil },
		Cluster: func(context.Context, string, string) (Cluster, error) {
			return Cluster{Version: "4.20.0", ReleaseImage: "quay.io/ocp:4.20.0"}, nil
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- rack.Start(ctx) }()
	defer func() {
		stop()
		g.Expect(<-ended).To(Succeed())
	}()

	g.Expect(e.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: labNamespace}})).To(Succeed())
	created, err := NewBareMetalHosts(ctx, e.Client(), labNamespace, 3)
	g.Expect(err).NotTo(HaveOccurred())
	state := func(bmh *metal3api.BareMetalHost) func() metal3api.ProvisioningState {
		return func() metal3api.ProvisioningState {
			g.Expect(client.IgnoreNotFound(e.Client().Get(ctx, client.ObjectKeyFromObject(bmh), bmh))).To(Succeed())
			return bmh.Status.Provisioning.State
		}
	}
	for i, bmh := range created {
		g.Eventually(state(bmh)).Should(Equal(metal3api.StateAvailable))
		patch := client.MergeFrom(bmh.DeepCopy())
		bmh.Spec.Image = isoImage(testInfraEnv)
		g.Expect(e.Client().Patch(ctx, bmh, patch)).To(Succeed())
		g.Eventually(state(bmh)).Should(Equal(metal3api.StateProvisioned))
		order := installOrder(rack.Host(bmh.Name), models.HostRoleMaster)
		order.Bootstrap = i == 0
		service.order(rack.Host(bmh.Name).Hardware().UUID, order)
	}
	for _, host := range rack.Hosts() {
		g.Eventually(host.Stage).Should(Equal(models.HostStageDone), func() string { return host.Name() })
	}
	l := &lab{WithT: g, ctx: ctx, workload: opened}
	g.Eventually(l.rolledOut).Should(BeTrue())
	node := l.node("host-0-node")()
	g.Expect(readiness(node)).To(Equal(corev1.ConditionTrue))
	g.Expect(node.Labels).To(HaveKeyWithValue(uuidLabel, "uid-host-0"))
	g.Expect(node.Spec.Taints).To(ConsistOf(corev1.Taint{Key: masterLabel, Effect: corev1.TaintEffectNoSchedule}))

	g.Expect(e.Client().Delete(ctx, created[0])).To(Succeed())
	g.Eventually(rack.Host("host-0").PoweredOn).Should(BeFalse())
	g.Eventually(func() corev1.ConditionStatus { return readiness(l.node("host-0-node")()) }).Should(Equal(corev1.ConditionUnknown))
}
