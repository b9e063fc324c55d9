package desired

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestMachinesAreBalancedOverFailureDomains(t *testing.T) {
	for situation, tc := range map[string]struct {
		// there lists the domains of the existing Machines, with a prefix - for those that are being deleted.
		there  []string
		wanted []string
	}{
		"an installation, in turn":             {wanted: []string{"a", "b", "c", "a", "b"}},
		"the one that lacks a Machine":         {there: []string{"a", "c", "a"}, wanted: []string{"b"}},
		"two more than one each":               {there: []string{"a", "b", "c"}, wanted: []string{"a", "b"}},
		"all in one":                           {there: []string{"b", "b", "b"}, wanted: []string{"a", "c", "c"}},
		"a Machine is being deleted":           {there: []string{"a", "-b", "c"}, wanted: []string{"b"}},
		"created Machines count":               {there: []string{"b"}, wanted: []string{"c", "a"}},
		"in turn, if all have the same number": {there: []string{"-a"}, wanted: []string{"b", "c", "a"}},
		"a domain that no longer exists":       {there: []string{"z", "a", "b"}, wanted: []string{"c"}},
		"a domain without control planes":      {there: []string{"workers", "a", "b"}, wanted: []string{"c"}},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			f := factsOf(nil)
			f.Cluster.Status.FailureDomains = []clusterv1.FailureDomain{
				{
					Name:         "c",
					ControlPlane: ptr.To(true),
				},
				{Name: "a", ControlPlane: ptr.To(true)},
				{Name: "workers"},
				{Name: "b", ControlPlane: ptr.To(true)},
			}
			taken, err := FreeSlots(f, len(tc.there))
			g.Expect(err).NotTo(HaveOccurred())
			for i, name := range tc.there {
				m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: taken[i].Name}, Spec: clusterv1.MachineSpec{FailureDomain: name}}
				if name[0] == '-' {
					m.Spec.FailureDomain, m.DeletionTimestamp = name[1:], ptr.To(metav1.Now())
				}
				f.Machines = append(f.Machines, m)
			}
			slots, err := FreeSlots(f, len(tc.wanted))
			g.Expect(err).NotTo(HaveOccurred())
			var got []string
			for _, slot := range slots {
				got = append(got, slot.FailureDomain)
			}
			g.Expect(got).To(Equal(tc.wanted))
		})
	}
	slots, err := FreeSlots(factsOf(nil), 3)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(slots).To(HaveEach(HaveField("FailureDomain", "")))
}
