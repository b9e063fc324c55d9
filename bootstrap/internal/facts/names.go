package facts

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/validation"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// HostName returns the name of the host for users: that of its BareMetalHost or, without a BareMetalHost, the hostname of
// its Agent. While neither is known it is the recorded name; "" if none is recorded, or the Machine needs another host. agent
// is the identified Agent, or nil.
func (f *Facts) HostName(agent *aiv1beta1.Agent) string {
	recorded := f.Config.Status.HostName
	switch {
	case f.Host != nil:
		return f.Host.Name
	case f.NeedsHost():
		return ""
	case f.InfraMachine == nil || f.HasBareMetalHost() || agent == nil:
		return recorded
	}
	const longest = validation.DNS1123SubdomainMaxLength
	return cmp.Or(bound.Identifier(agent.Spec.Hostname, longest), bound.Identifier(agent.Status.Inventory.Hostname, longest), recorded)
}

// DescribeHost returns how messages name the host of an Agent: "host <name>", or "Agent <name>" while the name of the host is
// not known.
func (f *Facts) DescribeHost(agent *aiv1beta1.Agent) string {
	if name := f.HostName(agent); name != "" {
		return "host " + name
	}
	return "Agent " + agent.Name
}

// DescribeAgent returns how messages name an Agent that a user has to change: "Agent <name> of host <name>". It is
// "Agent <name>" while the name of the host is not known.
func (f *Facts) DescribeAgent(agent *aiv1beta1.Agent) string {
	text := "Agent " + agent.Name
	if name := f.HostName(agent); name != "" {
		text += " of host " + name
	}
	return text
}

// NodeName returns the name of the Node of the Machine, or the recorded one; "" before the host has joined the cluster.
func (f *Facts) NodeName() string {
	if f.Machine == nil {
		return f.Config.Status.NodeName
	}
	return cmp.Or(f.Machine.Status.NodeRef.Name, f.Config.Status.NodeName)
}
