package installed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// States of a host in assisted-service that the conditions distinguish.
var (
	pendingStates         = sets.New(aiv1beta1.HostStatusInstallingPendingUserAction)
	preparingFailedStates = sets.New(aiv1beta1.HostStatusPreparingFailed)
	// brokenStates are the states of a host that fails independent of the others. failingStates also contain
	// the states of hosts whose validations do not all pass.
	brokenStates = sets.New(
		aiv1beta1.HostStatusError, aiv1beta1.HostStatusPreparingFailed, aiv1beta1.HostStatusCanceled, aiv1beta1.HostStatusDisconnected,
	)
	failingStates = sets.New(aiv1beta1.HostStatusInsufficient).Union(brokenStates)
)

// passing are reasons of hosts that are not bound yet and whose wait ends automatically. The same holds for
// reasons that begin with WaitingFor.
var passing = []string{bootstrapv1.HostBindingReason, bootstrapv1.ClusterNotAcceptingHostsReason}

// consequence is the text of assisted-service for hosts that failed only because another host failed.
const consequence = "Host is part of a cluster that failed to install"

// Failing reports whether a host is in a failing state.
func Failing(agent *aiv1beta1.Agent) bool { return failingStates.Has(agent.Status.DebugInfo.State) }

// waitingForHosts names the hosts that block the installation: Machines whose host is stuck, as Cluster API
// mirrors the condition of their OpenshiftAssistedConfigs. Bound hosts fail validations only because the
// others are missing. They are named if no other host is the cause.
func (v *View) waitingForHosts(message string) metav1.Condition {
	var stuck []string
	for _, m := range slices.Concat(v.Present, v.Workers) {
		if !m.DeletionTimestamp.IsZero() {
			stuck = append(stuck, fmt.Sprintf("Machine %s is being deleted", m.Name))
			continue
		}
		c := conditions.Get(m, clusterv1.MachineBootstrapConfigReadyCondition)
		bound := slices.ContainsFunc(v.Agents, func(agent aiv1beta1.Agent) bool { return facts.RunsOn(&agent, m) })
		if bound || c == nil || c.Status != metav1.ConditionFalse || slices.Contains(passing, c.Reason) ||
			strings.HasPrefix(c.Reason, "WaitingFor") && c.Reason != bootstrapv1.WaitingForHostIdentityReason &&
				c.Reason != bootstrapv1.WaitingForHostValidationReason {
			continue
		}
		stuck = append(stuck, fmt.Sprintf("Machine %s: %s: %s", m.Name, c.Reason, c.Message))
	}
	if len(stuck) == 0 {
		return condition.False(controlplanev1.InstalledCondition, controlplanev1.WaitingForHostsReason, v.ofHosts(message, failingStates))
	}
	return condition.False(
		controlplanev1.InstalledCondition,
		controlplanev1.WaitingForHostsReason,
		v.ofHosts(message+"; "+bound.Join(stuck, "Machine"), brokenStates),
	)
}

func (v *View) anyHost(states sets.Set[string]) bool {
	return slices.ContainsFunc(v.Agents, func(agent aiv1beta1.Agent) bool { return states.Has(agent.Status.DebugInfo.State) })
}

// ofHosts adds the hosts in the given states to a message, with their texts. If some hosts are the cause,
// only those are added.
func (v *View) ofHosts(message string, states sets.Set[string]) string {
	var causes, consequences []string
	for i := range v.Agents {
		switch agent := &v.Agents[i]; {
		case !states.Has(agent.Status.DebugInfo.State):
		case agent.Status.DebugInfo.StateInfo == consequence:
			consequences = append(consequences, Describe(agent))
		default:
			causes = append(causes, Describe(agent))
		}
	}
	hosts := causes
	if len(hosts) == 0 {
		hosts = consequences
	}
	if len(hosts) == 0 {
		return message
	}
	return strings.TrimRight(message, ". ") + "; " + bound.Join(hosts, "host")
}

// The installation steps of a host, in order. They are coarser than the stages of assisted-service.
const (
	notBegun        = "not begun"
	writing         = "writing to disk"
	waitingForOther = "waiting for others"
	starting        = "starting from disk"
	done            = "installed"
)

// hostsOnTheirWay counts the hosts of an installation by step; empty if there are no hosts. Each change is a
// write, also of the Cluster.
func (v *View) hostsOnTheirWay() string {
	counts := map[string]int{}
	for i := range v.Agents {
		counts[way(&v.Agents[i])]++
	}
	var parts []string
	for _, stretch := range []string{notBegun, writing, waitingForOther, starting, done} {
		if n := counts[stretch]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, stretch))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s", english.Plural(len(v.Agents), "host", ""), strings.Join(parts, ", "))
}

// way returns the installation step of a host.
func way(host *aiv1beta1.Agent) string {
	switch stage := host.Status.Progress.CurrentStage; {
	case rank(host) < 0:
		return notBegun
	case slices.Contains(waitingStages, stage):
		return waitingForOther
	case rank(host) < slices.Index(installationStages, aiv1beta1.HostStageRebooting):
		return writing
	case stage != aiv1beta1.HostStageDone:
		return starting
	default:
		return done
	}
}

// Describe returns the problem that assisted-service reports for a host.
func Describe(agent *aiv1beta1.Agent) string {
	return fmt.Sprintf("host %s: %s", bound.Value(facts.Hostname(agent)), assisted.ValidationProblems(agent))
}
