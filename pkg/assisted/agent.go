package assisted

import (
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
)

// HasInventory tells whether the agent has sent the inventory of its host. assisted-service forgets it when the host is bound, until the
// agent sends it again.
func HasInventory(agent *aiv1beta1.Agent) bool { return len(agent.Status.Inventory.Interfaces) > 0 }

// AgentCondition returns a condition of an Agent; its zero value when the Agent has none of that type.
func AgentCondition(agent *aiv1beta1.Agent, conditionType conditionsv1.ConditionType) conditionsv1.Condition {
	for _, c := range agent.Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	return conditionsv1.Condition{}
}
