package removal

import (
	"testing"

	. "github.com/onsi/gomega"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// The record of released hosts is read as it was written, or is an error. Each recorded host has a state.
func FuzzReleasedHosts(f *testing.F) {
	for _, record := range []string{
		`[{"machine":"m","providerID":"metal3://a","hostUID":"b","node":"n","uid":"c","addresses":["192.168.1.1"],"members":["1a"]}]`,
		`[{"node":"n"}]`,
		`[{}]`,
		`[null]`,
		`null`,
		`{}`,
		``,
	} {
		f.Add(record)
	}
	f.Fuzz(func(t *testing.T, record string) {
		g := NewWithT(t)
		cp := &controlplanev1.OpenshiftAssistedControlPlane{}
		cp.Annotations = map[string]string{controlplanev1.ReleasedHostsAnnotation: record}
		situation, err := Of(&facts.Facts{ControlPlane: cp})
		if err != nil {
			g.Expect(err).To(MatchError(ContainSubstring(controlplanev1.ReleasedHostsAnnotation)))
			return
		}
		for _, left := range situation.ReleasedHosts {
			g.Expect(situation.StateOf(left)).NotTo(BeEmpty())
			g.Expect(left.Origin()).NotTo(BeEmpty())
		}
		written, err := Record(situation.ReleasedHosts)
		g.Expect(err).NotTo(HaveOccurred())
		cp.Annotations[controlplanev1.ReleasedHostsAnnotation] = written
		again, err := Of(&facts.Facts{ControlPlane: cp})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.ReleasedHosts).To(HaveLen(len(situation.ReleasedHosts)))
		for i, left := range again.ReleasedHosts {
			g.Expect(left.Origin()).To(Equal(situation.ReleasedHosts[i].Origin()))
		}
	})
}
