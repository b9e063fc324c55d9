package assisted

import (
	"net"
	"slices"
	"strings"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
)

// HasInventory reports whether the agent has sent the inventory of its host. assisted-service forgets it when the host is bound, until the
// agent sends it again.
func HasInventory(agent *aiv1beta1.Agent) bool { return len(agent.Status.Inventory.Interfaces) > 0 }

// mostAddresses bounds how many addresses of a host are read: its inventory is written by the host.
const mostAddresses = 64

// Addresses returns the IP addresses in the inventory of a host, without link-local ones, up to a limit.
func Addresses(agent *aiv1beta1.Agent) []string {
	var found []string
	for _, nic := range agent.Status.Inventory.Interfaces {
		for _, address := range slices.Concat(nic.IPV4Addresses, nic.IPV6Addresses) {
			address, _, _ = strings.Cut(address, "/")
			if ip := net.ParseIP(address); ip != nil && ip.IsGlobalUnicast() && len(found) < mostAddresses {
				found = append(found, ip.String())
			}
		}
	}
	return found
}

// AgentCondition returns a condition of an Agent; its zero value when the Agent has none of that type.
func AgentCondition(agent *aiv1beta1.Agent, conditionType conditionsv1.ConditionType) conditionsv1.Condition {
	for _, c := range agent.Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	return conditionsv1.Condition{}
}

// NotPassed says what a host misses, as far as assisted-service tells. Of validations, its state names only those that
// fail, and is an empty list while others are pending: all that do not pass are in the condition, which is false only
// in the states that are about them.
func NotPassed(agent *aiv1beta1.Agent) string {
	validated := AgentCondition(agent, aiv1beta1.ValidatedCondition)
	switch info := agent.Status.DebugInfo.StateInfo; {
	case validated.Status == corev1.ConditionFalse && namesSomething(validated.Message):
		return RedactURLs(strings.TrimSpace(validated.Message))
	case namesSomething(info):
		return RedactURLs(strings.TrimSpace(info))
	}
	return "it names no validation that fails"
}

// namesSomething reports whether a text is more than the beginning of a list.
func namesSomething(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && !strings.HasSuffix(text, ":")
}
