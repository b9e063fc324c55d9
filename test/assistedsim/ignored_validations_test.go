package assistedsim

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/models"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

func TestIgnoredValidations(t *testing.T) {
	for situation, tc := range map[string]struct {
		cluster, hosts string
		refused        string
		ignored        bool
	}{
		"none":                          {},
		"of the cluster alone":          {cluster: "ntp-server-configured"},
		"of hosts":                      {hosts: "has-memory-for-role, ntp-synced", ignored: true},
		"all of hosts":                  {hosts: "all", ignored: true},
		"another one of hosts":          {hosts: "has-memory-for-role"},
		"unknown":                       {hosts: "ntp", refused: "Validation ID 'ntp' is not a known host validation"},
		"that of the other kind":        {cluster: "ntp-synced", refused: "is not a known cluster validation"},
		"one that cannot be ignored":    {hosts: "connected", refused: "unable to ignore the following host validations (connected)"},
		"an empty item":                 {hosts: "ntp-synced,,connected", refused: "failed to parse"},
		"of the cluster, not ignorable": {cluster: "pull-secret-set", refused: "unable to ignore the following cluster validations"},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			deployment, aci := described()
			aci.Annotations = map[string]string{
				assisted.IgnoredClusterValidationsAnnotation: tc.cluster, assisted.IgnoredHostValidationsAnnotation: tc.hosts,
			}
			c := &cluster{name: deployment.Spec.ClusterName, spec: *aci.Spec.DeepCopy()}
			err := c.acceptChanges(deployment, aci)
			if tc.refused != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.refused)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			key := types.NamespacedName{Name: "c"}
			s := &Simulator{clusters: map[types.NamespacedName]*cluster{key: c}}
			g.Expect(s.ignores(&host{cluster: key}, models.HostValidationIDNtpSynced)).To(Equal(tc.ignored))
		})
	}
}
