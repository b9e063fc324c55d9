package facts

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

func TestHostAndNodeHaveTheNamesThatUsersKnow(t *testing.T) {
	infra := func(kind string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetKind(kind)
		return u
	}
	reporting := &aiv1beta1.Agent{}
	reporting.Status.Inventory.Hostname = "reported"
	named := reporting.DeepCopy()
	named.Spec.Hostname = "named"
	long := reporting.DeepCopy()
	long.Spec.Hostname = strings.Repeat("a", 300)
	for situation, tc := range map[string]struct {
		change func(*Facts)
		agent  *aiv1beta1.Agent
		host   string
	}{
		"a BareMetalHost is chosen": {change: func(f *Facts) {
			f.InfraMachine, f.Host = infra(metal3.MachineKind), &metal3.Host{ObjectMeta: metav1.ObjectMeta{Name: "rack1-u7"}}
		}, agent: named, host: "rack1-u7"},
		"Metal3 has to choose another BareMetalHost": {change: func(f *Facts) { f.InfraMachine = infra(metal3.MachineKind) }},
		"the config is being deleted": {change: func(f *Facts) {
			f.Config.DeletionTimestamp = &metav1.Time{}
		}, agent: named, host: "recorded"},
		"another infrastructure, discovered": {
			change: func(f *Facts) { f.InfraMachine = infra("PlainMachine") }, agent: reporting, host: "reported",
		},
		"another infrastructure, with a hostname in the spec": {
			change: func(f *Facts) { f.InfraMachine = infra("PlainMachine") }, agent: named, host: "named",
		},
		"another infrastructure, with a hostname that is too long": {
			change: func(f *Facts) { f.InfraMachine = infra("PlainMachine") }, agent: long, host: "reported",
		},
		"another infrastructure, no Agent": {change: func(f *Facts) { f.InfraMachine = infra("PlainMachine") }, host: "recorded"},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			f := &Facts{Config: &bootstrapv1.OpenshiftAssistedConfig{}, Machine: &clusterv1.Machine{}}
			f.Config.Status.HostName = "recorded"
			tc.change(f)
			g.Expect(f.HostName(tc.agent)).To(Equal(tc.host))
		})
	}

	g := NewWithT(t)
	f := &Facts{Config: &bootstrapv1.OpenshiftAssistedConfig{}, Machine: &clusterv1.Machine{}}
	g.Expect(f.NodeName()).To(BeEmpty())
	f.Machine.Status.NodeRef.Name = "master-0"
	g.Expect(f.NodeName()).To(Equal("master-0"))
	f.Machine, f.Config.Status.NodeName = nil, "master-1"
	g.Expect(f.NodeName()).To(Equal("master-1"), "the Machine is deleted")

	f = &Facts{Config: &bootstrapv1.OpenshiftAssistedConfig{}, Machine: &clusterv1.Machine{}}
	agent := &aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "8ec5155b"}}
	g.Expect(f.DescribeHost(agent)).To(Equal("Agent 8ec5155b"))
	g.Expect(f.DescribeAgent(agent)).To(Equal("Agent 8ec5155b"))
	f.Host = &metal3.Host{ObjectMeta: metav1.ObjectMeta{Name: "rack1-u7"}}
	g.Expect(f.DescribeHost(agent)).To(Equal("host rack1-u7"))
	g.Expect(f.DescribeAgent(agent)).To(Equal("Agent 8ec5155b of host rack1-u7"))
}
