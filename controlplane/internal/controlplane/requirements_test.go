package controlplane

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

func TestNoObjectIsCreatedForAClusterNameThatAssistedServiceRefuses(t *testing.T) {
	for _, name := range []string{"site.one", strings.Repeat("a", 55)} {
		h := newHub(t, altered(func(c *clusterv1.Cluster) { c.Name = name })(world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.OwnerReferences[0].Name = name
		}))...).withTime()
		h.reconcile()
		h.Expect(conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition)).To(And(
			HaveField("Reason", controlplanev1.InvalidConfigurationReason), HaveField("Message", ContainSubstring("Set config.clusterName"))))
		h.Expect(h.machines()).To(BeEmpty())

		h.alter(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Config.ClusterName = "site-1" })
		h.reconcile()
		deployment, _ := h.registration()
		h.Expect(deployment.Spec.ClusterName).To(Equal("site-1"))
		h.Expect(h.machines()).To(HaveLen(3))
	}
}
