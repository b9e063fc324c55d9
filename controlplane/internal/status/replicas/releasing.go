package replicas

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize/english"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// HostsReleasing reports the hosts that are being released, or their blocker. It adds a foreign
// MachineDrainRule: the drain of a Machine that is being deleted may wait for it.
func (v *View) HostsReleasing() metav1.Condition {
	const t = controlplanev1.HostsReleasingCondition
	c, rule := v.releases(), v.Found.Blocked(tasks.GuardExclusion)
	switch {
	case rule == nil:
	case c.Status == metav1.ConditionTrue:
		c.Message += ". " + rule.Message
	default: // no drain waits for the rule yet
		return condition.False(t, rule.Reason, rule.Message)
	}
	return c
}

// releases returns the condition HostsReleasing without the MachineDrainRule.
func (v *View) releases() metav1.Condition {
	const t = controlplanev1.HostsReleasingCondition
	if blocked := v.Found.Blocked(tasks.HostRelease); blocked != nil {
		c := condition.True(t, blocked.Reason)
		c.Message = blocked.Message
		return c
	}
	hosts := v.releasedHosts()
	if hosts == "" {
		return condition.False(t, controlplanev1.NotReleasingReason, "")
	}
	c := condition.True(t, controlplanev1.HostsReleasingReason)
	c.Message = hosts
	return c
}

// releasedHosts names the hosts that are being released; empty if there are none. Before the cluster is
// installed its hosts are no members of etcd. When the whole cluster is being deleted, its etcd is not needed.
func (v *View) releasedHosts() string {
	if !v.Installed() || v.ClusterDeleting() {
		return ""
	}
	situation, _ := v.Removal() // CleanUp reports an invalid record
	machines, left := situation.Releasing()
	var parts []string
	if len(machines) > 0 {
		parts = append(parts, fmt.Sprintf("releasing the %s of %s %s: see %s condition Deleting",
			english.PluralWord(len(machines), "host", "hosts"), english.PluralWord(len(machines), "Machine", "Machines"),
			bound.List(machines), english.PluralWord(len(machines), "its", "their")))
	}
	if len(left) > 0 {
		parts = append(parts, fmt.Sprintf("cleaning up after the %s of %s", english.PluralWord(len(left), "host", "hosts"), bound.List(left)))
	}
	return strings.Join(parts, "; ")
}

// ForeignDrainRule reports a MachineDrainRule of a user with the name of the provider's own rule.
func ForeignDrainRule(name string) string {
	return fmt.Sprintf("MachineDrainRule %s is foreign, and the provider does not change it: the drain of a control-plane Node may wait "+
		"for guard Pods of OpenShift without end. "+
		"Delete the MachineDrainRule, or create it with another name: this wipes no host", name)
}
