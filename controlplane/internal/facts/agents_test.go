package facts

import (
	"testing"

	. "github.com/onsi/gomega"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

func TestNodeOf(t *testing.T) {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m0"}}
	agent := aiv1beta1.Agent{Spec: aiv1beta1.AgentSpec{Hostname: "host0"}}
	elsewhere := *agent.DeepCopy()
	agent.Labels = map[string]string{aiv1beta1.InfraEnvNameLabel: "m0"}
	labelled := *agent.DeepCopy()
	labelled.Spec.NodeLabels = map[string]string{metal3.HostUIDLabel: "bmh"}
	for situation, tc := range map[string]struct {
		agent aiv1beta1.Agent
		node  Node
		found bool
	}{
		"by name":                     {agent, Node{Name: "host0"}, true},
		"another name":                {agent, Node{Name: "host1"}, false},
		"by the label of the host":    {labelled, Node{Name: "any", HostUID: "bmh"}, true},
		"the label is not there yet":  {labelled, Node{Name: "host0"}, false},
		"it is linked already":        {agent, Node{Name: "host0", ProviderID: "metal3://x"}, false},
		"an Agent of another Machine": {elsewhere, Node{Name: "host0"}, false},
	} {
		t.Run(situation, func(t *testing.T) {
			f := &Facts{Agents: []aiv1beta1.Agent{tc.agent}, Workload: Workload{Nodes: []Node{tc.node}}}
			NewWithT(t).Expect(f.NodeOf(m) != nil).To(Equal(tc.found))
		})
	}
}
