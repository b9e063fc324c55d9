package choice

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// poolMachine returns the Metal3Machine of control plane ha with a specification.
func poolMachine(spec map[string]any) *unstructured.Unstructured {
	machine := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	machine.SetLabels(map[string]string{clusterv1.MachineControlPlaneLabel: "", clusterv1.MachineControlPlaneNameLabel: "ha"})
	return machine
}

// poolHost returns an available host with a label; an empty key is none.
func poolHost(name, key, value string) *metal3.Host {
	host := &metal3.Host{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{key: value}}}
	host.Status.Provisioning.State = "available"
	return host
}

func TestPoolOfAMachine(t *testing.T) {
	inspecting := poolHost("i", "zone", "a")
	inspecting.Status.Provisioning.State = "inspecting"
	near := map[string]any{"failureDomain": "r1"}
	zoneB := map[string]any{"hostSelector": map[string]any{"matchLabels": map[string]any{"zone": "b"}}}
	free, inDomain := poolHost("a", "zone", "a"), poolHost("n", metal3.FailureDomainLabel, "r1")
	reserved, other := poolHost("r", metal3.NodeReuseLabel, "cp-ha"), poolHost("r", metal3.NodeReuseLabel, "cp-other")
	const (
		notConsidered    = "not considered: Metal3 first uses hosts "
		otherReserved    = notConsidered + "that the label " + metal3.NodeReuseLabel + " reserves for the Machine"
		reservedForOther = "reserved for the next Machine of cp-other by the label " + metal3.NodeReuseLabel
	)
	for situation, tc := range map[string]struct {
		spec   map[string]any
		hosts  []*metal3.Host
		reason string // of the first host
	}{
		"available":                  {nil, []*metal3.Host{free}, ""},
		"not available":              {nil, []*metal3.Host{inspecting}, "inspecting"},
		"excluded by the selector":   {zoneB, []*metal3.Host{free}, "labels do not match hostSelector zone=b"},
		"another host is reserved":   {nil, []*metal3.Host{free, reserved}, otherReserved},
		"reserved":                   {nil, []*metal3.Host{reserved, free}, ""},
		"another host is near":       {near, []*metal3.Host{free, inDomain}, notConsidered + "in the failure domain r1"},
		"no host is near":            {near, []*metal3.Host{free}, ""},
		"near, and another is not":   {near, []*metal3.Host{inDomain, free}, ""},
		"reserved in another domain": {near, []*metal3.Host{reserved, inDomain}, ""},
		"reserved for another owner": {nil, []*metal3.Host{other}, reservedForOther},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			pool, err := PoolOf(poolMachine(tc.spec), tc.hosts)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pool.Excludes(tc.hosts[0])).To(Equal(tc.reason))
			g.Expect(pool.Expected()).To(BeEmpty())
		})
	}
}

func TestPoolWaitsForItsReservedHost(t *testing.T) {
	g := NewWithT(t)
	reserved := poolHost("r", metal3.NodeReuseLabel, "cp-ha")
	reserved.Status.Provisioning.State = "deprovisioning"
	pool, err := PoolOf(poolMachine(nil), []*metal3.Host{poolHost("a", "zone", "a"), reserved})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pool.Waiting).To(BeIdenticalTo(reserved))
	g.Expect(pool.Expected()).To(Equal("Metal3 waits for BareMetalHost r (deprovisioning), which the label " + metal3.NodeReuseLabel +
		" reserves for the Machine, and uses no other host meanwhile"))
}

func TestPoolOfAnInvalidSelector(t *testing.T) {
	_, err := PoolOf(poolMachine(map[string]any{"hostSelector": map[string]any{"matchLabels": map[string]any{"a b": "c"}}}), nil)
	NewWithT(t).Expect(err).To(MatchError(HavePrefix("spec.hostSelector: ")))
}
