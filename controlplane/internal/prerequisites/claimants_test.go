package prerequisites

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/informer"
)

// The preflight reads only the control planes of the hub with the same domain or VIPs, in any notation.
func TestClaimantsAreReadByIndex(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(controlplanev1.AddToScheme(scheme)).To(Succeed())
	builder := fake.NewClientBuilder().WithScheme(scheme)
	add := func(name, vip, domain string) *controlplanev1.OpenshiftAssistedControlPlane {
		cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}}
		cp.Spec.Config.ClusterName, cp.Spec.Config.BaseDomain = domain, "example.net"
		cp.Spec.Config.APIVIPs = []string{vip}
		builder.WithObjects(cp)
		return cp
	}
	for i := range 50 {
		add(fmt.Sprintf("other-%d", i), fmt.Sprintf("10.9.0.%d", i), fmt.Sprintf("c-%d", i))
	}
	add("same-vip", "fd00:0::5", "elsewhere")
	cp := add("c1", "fd00::5", "cluster1")
	for _, index := range informer.Indexes() {
		if _, is := index.Object.(*controlplanev1.OpenshiftAssistedControlPlane); is {
			builder.WithIndex(index.Object, index.Field, index.Values)
		}
	}
	read := 0
	c := interceptor.NewClient(builder.Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if all, is := list.(*controlplanev1.OpenshiftAssistedControlPlaneList); is {
				read += len(all.Items)
			}
			return err
		},
	})
	found, err := NewPreflight(c, nil, nil, nil).claimants(t.Context(), cp)
	g.Expect(err).NotTo(HaveOccurred())
	names := map[string]bool{}
	for _, one := range found {
		names[one.Name] = true
	}
	g.Expect(names).To(Equal(map[string]bool{cp.Name: true, "same-vip": true}))
	g.Expect(read).To(BeNumerically("<=", 4), "the other control planes are not read")
}
