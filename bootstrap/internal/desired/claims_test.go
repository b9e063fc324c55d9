package desired

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/sample"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

func installedAgent(name string) *aiv1beta1.Agent {
	agent := sample.Agent(name, "elsewhere", sample.BootMAC)
	agent.Spec.ClusterDeploymentName, agent.Spec.Approved = &aiv1beta1.ClusterReference{Namespace: sample.Namespace, Name: "production"}, true
	agent.Status.DebugInfo.State = "installed"
	return agent
}

func claimantOf(name string) *metal3.Host {
	host := sample.BareMetalHost()
	host.Namespace, host.Name = "site-7", name
	return host
}

func TestServerInUse(t *testing.T) {
	g := NewWithT(t)
	h := newIdentified()
	g.Expect(ServerInUse(h.Facts, h.agent, nil, nil)).To(BeEmpty())
	g.Expect(ServerInUse(h.Facts, h.agent, []*aiv1beta1.Agent{sample.Agent("b", "elsewhere", sample.BootMAC)}, nil)).
		To(BeEmpty(), "the other Agent is neither bound nor approved")
	g.Expect(ServerInUse(h.Facts, nil, []*aiv1beta1.Agent{installedAgent("b")}, nil)).To(BeEmpty(), "no Agent to approve")

	g.Expect(ServerInUse(h.Facts, h.agent, []*aiv1beta1.Agent{installedAgent("b")}, nil)).To(And(
		ContainSubstring("Agent b of InfraEnv elsewhere, which is installed in ClusterDeployment production"), ContainSubstring("reinstalled")))
	g.Expect(ServerInUse(h.Facts, h.agent, nil, []string{"OpenshiftAssistedConfig other, which is installed, recorded Agent a"})).
		To(ContainSubstring("start it from its disk"))
	h.Claimants = map[string][]*metal3.Host{h.Host.Name: {claimantOf("node-0")}}
	g.Expect(ServerInUse(h.Facts, nil, nil, nil)).
		To(
			And(
				HavePrefix("BareMetalHost lab/rack1-u7"),
				ContainSubstring("BareMetalHost site-7/node-0"),
				ContainSubstring("baremetalhost.metal3.io/detached"),
			),
		)
}

// The length of conditions is limited.
func TestMessageOfManyClaimsIsBounded(t *testing.T) {
	h := newIdentified()
	h.Claimants = map[string][]*metal3.Host{}
	var agents []*aiv1beta1.Agent
	var recorded []string
	for i := range 200 {
		h.Claimants[h.Host.Name] = append(h.Claimants[h.Host.Name], claimantOf(fmt.Sprintf("node-%d", i)))
		agents = append(agents, installedAgent(fmt.Sprintf("a%d", i)))
		recorded = append(recorded, fmt.Sprintf("OpenshiftAssistedConfig c%d, which is installed, recorded Agent a", i))
	}
	NewWithT(t).Expect(len(ServerInUse(h.Facts, h.agent, agents, recorded))).To(BeNumerically("<", 1024))
	withoutHost(h)
	NewWithT(
		t,
	).Expect(len(ServerInUse(&facts.Facts{Config: h.Config, InfraMachine: h.InfraMachine}, h.agent, agents, nil))).
		To(BeNumerically("<", 1024))
}
