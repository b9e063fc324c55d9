package facts

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// recording returns the facts of a Machine whose OpenshiftAssistedConfig records an Agent as that of its host.
func recording(m *clusterv1.Machine, agent aiv1beta1.Agent) *Facts {
	config := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
	config.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(m, clusterv1.GroupVersion.WithKind("Machine"))}
	config.Status.AgentRef = &corev1.LocalObjectReference{Name: agent.Name}
	return &Facts{Agents: []aiv1beta1.Agent{agent}, Configs: map[string]*bootstrapv1.OpenshiftAssistedConfig{m.Name: config}}
}

func machineAndAgent() (*clusterv1.Machine, aiv1beta1.Agent) {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "m0", UID: "uid-m0"}}
	agent := aiv1beta1.Agent{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "a0", Labels: map[string]string{aiv1beta1.InfraEnvNameLabel: "m0"}},
		Spec:       aiv1beta1.AgentSpec{Hostname: "host0"},
	}
	return m, agent
}

func TestAgentOfReturnsTheAgentThatTheConfigRecords(t *testing.T) {
	for situation, tc := range map[string]struct {
		change func(f *Facts, m *clusterv1.Machine)
		found  bool
	}{
		"recorded": {func(*Facts, *clusterv1.Machine) {}, true},
		"an Agent of another namespace, whose InfraEnv has the Machine's name": {
			func(f *Facts, _ *clusterv1.Machine) { f.Agents[0].Namespace = "tenant" }, false,
		},
		"an unknown Agent in the InfraEnv of the Machine's name": {func(f *Facts, _ *clusterv1.Machine) { f.Agents[0].Name = "stranger" }, false},
		"nothing is recorded": {
			func(f *Facts, m *clusterv1.Machine) { f.Configs[m.Name].Status.AgentRef = nil }, false,
		},
		"the config does not exist":              {func(f *Facts, m *clusterv1.Machine) { delete(f.Configs, m.Name) }, false},
		"the config belongs to a former Machine": {func(_ *Facts, m *clusterv1.Machine) { m.UID = "uid-of-its-successor" }, false},
		"the config has lost its owner":          {func(f *Facts, m *clusterv1.Machine) { f.Configs[m.Name].OwnerReferences = nil }, false},
		"the Agent was moved to another InfraEnv": {
			func(f *Facts, _ *clusterv1.Machine) { f.Agents[0].Labels[aiv1beta1.InfraEnvNameLabel] = "m1" }, false,
		},
		"an unknown Agent comes first in the same InfraEnv": {func(f *Facts, _ *clusterv1.Machine) {
			stranger := *f.Agents[0].DeepCopy()
			stranger.Name = "Stranger"
			f.Agents = []aiv1beta1.Agent{stranger, f.Agents[0]}
		}, true},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			m, agent := machineAndAgent()
			f := recording(m, agent)
			tc.change(f, m)
			found := f.AgentOf(m)
			g.Expect(found != nil).To(Equal(tc.found))
			if found != nil {
				g.Expect(found.Name).To(Equal("a0"))
			}
		})
	}
}

func TestRunsOnComparesNamespaces(t *testing.T) {
	g := NewWithT(t)
	m, agent := machineAndAgent()
	g.Expect(RunsOn(&agent, m)).To(BeTrue())
	agent.Namespace = "tenant"
	g.Expect(RunsOn(&agent, m)).To(BeFalse())
}

func TestNodeOf(t *testing.T) {
	m, agent := machineAndAgent()
	elsewhere := *agent.DeepCopy()
	elsewhere.Labels = nil
	labeled := *agent.DeepCopy()
	labeled.Spec.NodeLabels = map[string]string{metal3.HostUIDLabel: "bmh"}
	for situation, tc := range map[string]struct {
		agent aiv1beta1.Agent
		node  workload.Node
		found bool
	}{
		"by name":                     {agent, workload.Node{Name: "host0"}, true},
		"another name":                {agent, workload.Node{Name: "host1"}, false},
		"by the label of the host":    {labeled, workload.Node{Name: "any", HostUID: "bmh"}, true},
		"the label is still missing":  {labeled, workload.Node{Name: "host0"}, false},
		"the Node is already linked":  {agent, workload.Node{Name: "host0", ProviderID: "metal3://x"}, false},
		"an Agent of another Machine": {elsewhere, workload.Node{Name: "host0"}, false},
	} {
		t.Run(situation, func(t *testing.T) {
			f := recording(m, tc.agent)
			f.Workload.Nodes = []workload.Node{tc.node}
			NewWithT(t).Expect(f.NodeOf(m) != nil).To(Equal(tc.found))
		})
	}
}
