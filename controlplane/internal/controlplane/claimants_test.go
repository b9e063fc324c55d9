package controlplane

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// The preflight reads only the control planes of the hub with the same domain or VIPs, in any notation.
func TestClaimantsAreReadByIndex(t *testing.T) {
	objects := world(nil)
	other := func(name, vip, domain string) {
		cp := controlPlane(nil)
		cp.Name, cp.UID, cp.ResourceVersion = name, "", ""
		cp.Spec.Config.ClusterName, cp.Spec.Config.BaseDomain = domain, "example.net"
		cp.Spec.Config.APIVIPs, cp.Spec.Config.IngressVIPs = []string{vip}, nil
		objects = append(objects, cp)
	}
	for i := range 50 {
		other(fmt.Sprintf("other-%d", i), fmt.Sprintf("10.9.0.%d", i), fmt.Sprintf("c-%d", i))
	}
	other("same-vip", "fd00:0::5", "elsewhere")
	h := newHub(t, objects...)
	read := 0
	h.cached.Client = interceptor.NewClient(h.cached.Client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // the fake one
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if all, is := list.(*controlplanev1.OpenshiftAssistedControlPlaneList); is {
				read += len(all.Items)
			}
			return err
		},
	})
	cp := h.controlPlane()
	cp.Spec.Config.APIVIPs = []string{"fd00::5"}
	found, err := h.r.claimants(t.Context(), cp)
	h.Expect(err).NotTo(HaveOccurred())
	names := map[string]bool{}
	for _, one := range found {
		names[one.Name] = true
	}
	h.Expect(names).To(Equal(map[string]bool{cp.Name: true, "same-vip": true}))
	h.Expect(read).To(BeNumerically("<=", 4), "the other control planes are not read")
}
