package assisted

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

func TestHasInventory(t *testing.T) {
	g := NewWithT(t)
	agent := &aiv1beta1.Agent{}
	g.Expect(HasInventory(agent)).To(BeFalse())
	agent.Status.Inventory.Interfaces = []aiv1beta1.HostInterface{{MacAddress: "52:54:00:00:00:01"}}
	g.Expect(HasInventory(agent)).To(BeTrue())
}

func TestValidationProblems(t *testing.T) {
	const (
		empty   = "Host cannot be installed due to following failing validation(s): "
		failing = "The agent's validations are failing: "
		nothing = "assisted-service names no failed validation"
	)
	for situation, tc := range map[string]struct {
		info, validated string
		status          corev1.ConditionStatus
		wanted          string
	}{
		"one fails, another is pending": {
			empty + "no NTP", failing + "no NTP,routes pending", corev1.ConditionFalse, failing + "no NTP,routes pending",
		},
		"all are pending": {
			empty, failing + "Missing default routing information", corev1.ConditionFalse, failing + "Missing default routing information",
		},
		"no state": {
			"",
			"The agent's validations are pending for user: hostname",
			corev1.ConditionFalse,
			"The agent's validations are pending for user: hostname",
		},
		"only the state names one": {empty + "no NTP", failing, corev1.ConditionFalse, empty + "no NTP"},
		"nothing is named":         {empty, failing, corev1.ConditionFalse, nothing},
		"the condition is missing": {empty, "", "", nothing},
		"they pass, the host fails": {
			"Host failed to install", "The agent's validations are passing", corev1.ConditionTrue, "Host failed to install",
		},
		"they pass, no state info": {"", "The agent's validations are passing", corev1.ConditionTrue, nothing},
		"not calculated yet": {
			"Waiting for host", "The agent's validations have not yet been calculated", corev1.ConditionUnknown, "Waiting for host",
		},
		"a key in the state": {"cannot reach https://img.example/?api_key=top-secret", "", "", "cannot reach https://img.example/..."},
		"a key in the condition": {
			"", "cannot reach https://img.example/?api_key=top-secret", corev1.ConditionFalse, "cannot reach https://img.example/...",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			agent := &aiv1beta1.Agent{}
			agent.Status.DebugInfo.StateInfo = tc.info
			agent.Status.Conditions = []conditionsv1.Condition{{Type: aiv1beta1.ValidatedCondition, Status: tc.status, Message: tc.validated}}
			NewWithT(t).Expect(ValidationProblems(agent)).To(Equal(tc.wanted))
		})
	}
}

func TestAddressesOfAHostAreReadUpToALimit(t *testing.T) {
	g := NewWithT(t)
	agent := &aiv1beta1.Agent{}
	g.Expect(Addresses(agent)).To(BeEmpty())
	agent.Status.Inventory.Interfaces = []aiv1beta1.HostInterface{
		{IPV4Addresses: []string{"192.168.1.10/24", "no address", "127.0.0.1/8"}},
		{IPV4Addresses: []string{"192.168.2.10"}, IPV6Addresses: []string{"fd00:0::10/64", "fe80::1/64"}},
	}
	g.Expect(Addresses(agent)).To(Equal([]string{"192.168.1.10", "192.168.2.10", "fd00::10"}))
	agent.Status.Inventory.Interfaces[0].IPV4Addresses = slices.Repeat([]string{"192.168.1.10/24"}, 1000)
	g.Expect(Addresses(agent)).To(HaveLen(maxAddresses))
}
