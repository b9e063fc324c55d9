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
			c := &cluster{name: deployment.Spec.ClusterName, spec: *aci.Spec.DeepCopy(), state: models.ClusterStatusInsufficient}
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

// Once the installation has started, the service refuses any other list, until it adds hosts to the installed cluster.
func TestIgnoredValidationsOfStartedCluster(t *testing.T) {
	for state, accepted := range map[string]bool{
		models.ClusterStatusInsufficient:             true,
		models.ClusterStatusReady:                    true,
		models.ClusterStatusPendingForInput:          true,
		models.ClusterStatusAddingHosts:              true,
		models.ClusterStatusPreparingForInstallation: false,
		models.ClusterStatusInstalling:               false,
		models.ClusterStatusFinalizing:               false,
		models.ClusterStatusInstalled:                false,
		models.ClusterStatusError:                    false,
	} {
		for change, list := range map[string]map[string]string{
			"withdrawn": nil,
			"none":      {assisted.IgnoredHostValidationsAnnotation: ""},
			"more":      {assisted.IgnoredHostValidationsAnnotation: "ntp-synced,has-memory-for-role"},
			"unknown":   {assisted.IgnoredHostValidationsAnnotation: "unknown"},
		} {
			t.Run(state+" "+change, func(t *testing.T) {
				g := NewWithT(t)
				_, aci := described()
				c := &cluster{state: state, ignored: ignoredValidations{hosts: []string{"ntp-synced"}}}
				aci.Annotations = map[string]string{assisted.IgnoredHostValidationsAnnotation: " ntp-synced"}
				g.Expect(c.ignoreValidations(aci)).To(Succeed(), "the same list")
				aci.Annotations = list
				switch err := c.ignoreValidations(aci); {
				case !accepted:
					g.Expect(err).To(MatchError(ContainSubstring("cluster can be updated only in one of")))
				case change == "unknown":
					g.Expect(err).To(MatchError(ContainSubstring("is not a known host validation")))
				default:
					g.Expect(err).NotTo(HaveOccurred())
				}
			})
		}
	}
}

// The list of a cluster, even an empty one, replaces the list of the service.
func TestIgnoredValidationsReplaceThoseOfService(t *testing.T) {
	key := types.NamespacedName{Name: "c"}
	for situation, tc := range map[string]struct {
		list    []string
		ignored bool
	}{
		"no list":       {ignored: true},
		"empty list":    {list: []string{}},
		"another list":  {list: []string{"has-memory-for-role"}},
		"the same list": {list: []string{"ntp-synced"}, ignored: true},
	} {
		t.Run(situation, func(t *testing.T) {
			s := &Simulator{
				opts:     Options{DisabledHostValidations: []string{"ntp-synced"}},
				clusters: map[types.NamespacedName]*cluster{key: {ignored: ignoredValidations{hosts: tc.list}}},
			}
			NewWithT(t).Expect(s.ignores(&host{cluster: key}, models.HostValidationIDNtpSynced)).To(Equal(tc.ignored))
		})
	}
}
