package assisted

import (
	"net"
	"slices"
	"strings"

	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// SkipSpokeCleanupAnnotation prevents assisted-service from removing the Node of a deleted Agent from its cluster
// (see its agent_controller.go).
const SkipSpokeCleanupAnnotation = "agent.agent-install.openshift.io/skip-spoke-cleanup"

// HasInventory reports whether the agent has sent the inventory of its host. assisted-service drops the
// inventory when the host is bound, until the agent sends it again.
func HasInventory(agent *aiv1beta1.Agent) bool { return len(agent.Status.Inventory.Interfaces) > 0 }

// maxAddresses bounds the number of addresses that are read of a host, because the host writes its inventory.
const maxAddresses = 64

// Addresses returns the IP addresses in the inventory of a host, without link-local ones, up to maxAddresses.
func Addresses(agent *aiv1beta1.Agent) []string {
	var found []string
	for _, nic := range agent.Status.Inventory.Interfaces {
		for _, address := range slices.Concat(nic.IPV4Addresses, nic.IPV6Addresses) {
			address, _, _ = strings.Cut(address, "/")
			if ip := net.ParseIP(address); ip != nil && ip.IsGlobalUnicast() && len(found) < maxAddresses {
				found = append(found, ip.String())
			}
		}
	}
	return found
}

// CountGPUs returns how many GPUs of an inventory have the PCI IDs. An empty device matches any.
func CountGPUs(found []aiv1beta1.HostGPU, vendor, device string) int {
	count := 0
	for i := range found {
		if strings.EqualFold(found[i].VendorID, vendor) && (device == "" || strings.EqualFold(found[i].DeviceID, device)) {
			count++
		}
	}
	return count
}

// AgentCondition returns a condition of an Agent, or the zero value if the Agent has no condition of that
// type.
func AgentCondition(agent *aiv1beta1.Agent, conditionType conditionsv1.ConditionType) conditionsv1.Condition {
	for _, c := range agent.Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	return conditionsv1.Condition{}
}

// ValidationProblems returns the validations of a host that fail or are pending, as assisted-service reports
// them. The state info names only failed validations, and is an empty list while others are pending. The
// condition Validated names all of them, but is false only in the states in which they matter.
func ValidationProblems(agent *aiv1beta1.Agent) string {
	validated := AgentCondition(agent, aiv1beta1.ValidatedCondition)
	switch info := agent.Status.DebugInfo.StateInfo; {
	case validated.Status == corev1.ConditionFalse && hasContent(validated.Message):
		return RedactURLs(strings.TrimSpace(validated.Message))
	case hasContent(info):
		return RedactURLs(strings.TrimSpace(info))
	}
	return "assisted-service names no failed validation"
}

// hasContent reports whether a text is more than the heading of a list.
func hasContent(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && !strings.HasSuffix(text, ":")
}
