package status

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// States of a host in assisted-service, for which conditions look.
var (
	pendingStates         = sets.New(models.HostStatusInstallingPendingUserAction)
	preparingFailedStates = sets.New(models.HostStatusPreparingFailed)
	// brokenStates are those in which a host fails whatever becomes of the others; in failingStates are also those
	// whose validations do not all pass.
	brokenStates  = sets.New(models.HostStatusError, models.HostStatusPreparingFailed, models.HostStatusCancelled, models.HostStatusDisconnected)
	failingStates = sets.New(models.HostStatusInsufficient).Union(brokenStates)
)

// passing are the reasons of waits of a host that is not bound yet that end by themselves; so do others that begin with WaitingFor.
var passing = []string{bootstrapv1.HostBindingReason, bootstrapv1.ClusterNotAcceptingHostsReason}

// consequence is what assisted-service says of hosts that failed only because another one did.
const consequence = "Host is part of a cluster that failed to install"

// Failing reports whether a host is in a state that says that it fails.
func Failing(agent *aiv1beta1.Agent) bool { return failingStates.Has(agent.Status.DebugInfo.State) }

// waitingForHosts names those that keep the installation waiting: Machines whose host is stuck, as Cluster API mirrors
// it from their OpenshiftAssistedConfigs. Hosts that are bound already miss validations only because the others are not
// there, and are named where no other is to blame.
func (v *View) waitingForHosts(message string) metav1.Condition {
	var stuck []string
	for _, m := range slices.Concat(v.Found.Machines, v.Workers) {
		if !m.DeletionTimestamp.IsZero() {
			stuck = append(stuck, fmt.Sprintf("Machine %s is being deleted", m.Name))
			continue
		}
		c := conditions.Get(m, clusterv1.MachineBootstrapConfigReadyCondition)
		bound := slices.ContainsFunc(v.Agents, func(agent aiv1beta1.Agent) bool { return facts.RunsOn(&agent, m) })
		if bound || c == nil || c.Status != metav1.ConditionFalse || slices.Contains(passing, c.Reason) ||
			strings.HasPrefix(c.Reason, "WaitingFor") && c.Reason != bootstrapv1.WaitingForHostIdentityReason && c.Reason != bootstrapv1.WaitingForHostValidationReason {
			continue
		}
		stuck = append(stuck, fmt.Sprintf("Machine %s: %s: %s", m.Name, c.Reason, c.Message))
	}
	if len(stuck) == 0 {
		return no(controlplanev1.InstalledCondition, controlplanev1.WaitingForHostsReason, v.ofHosts(message, failingStates))
	}
	return no(controlplanev1.InstalledCondition, controlplanev1.WaitingForHostsReason, v.ofHosts(message+"; "+bound.Join(stuck, "Machine"), brokenStates))
}

func (v *View) anyHost(states sets.Set[string]) bool {
	return slices.ContainsFunc(v.Agents, func(agent aiv1beta1.Agent) bool { return states.Has(agent.Status.DebugInfo.State) })
}

// ofHosts adds which hosts are in one of the given states, and what they say; causes alone, where there are any.
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

// How far a host is on its way, in order. It is coarser than the stages of its installation.
const (
	notBegun        = "not begun"
	writing         = "writing to disk"
	waitingForOther = "waiting for others"
	starting        = "starting from disk"
	done            = "installed"
)

// hostsOnTheirWay counts the hosts of an installation by how far they are; empty when there are none. Each change is a
// write, of the Cluster as well.
func (v *View) hostsOnTheirWay() string {
	counts := map[string]int{}
	for i := range v.Agents {
		counts[way(&v.Agents[i])]++
	}
	var told []string
	for _, stretch := range []string{notBegun, writing, waitingForOther, starting, done} {
		if n := counts[stretch]; n > 0 {
			told = append(told, fmt.Sprintf("%d %s", n, stretch))
		}
	}
	if len(told) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s", english.Plural(len(v.Agents), "host", ""), strings.Join(told, ", "))
}

// way is how far a host is.
func way(host *aiv1beta1.Agent) string {
	switch stage := host.Status.Progress.CurrentStage; {
	case rank(host) < 0:
		return notBegun
	case slices.Contains(waitingStages, stage):
		return waitingForOther
	case rank(host) < slices.Index(installationStages, models.HostStageRebooting):
		return writing
	case stage != models.HostStageDone:
		return starting
	default:
		return done
	}
}

// Describe says what a host misses.
func Describe(agent *aiv1beta1.Agent) string {
	return fmt.Sprintf("host %s: %s", bound.Value(facts.Hostname(agent)), assisted.ValidationProblems(agent))
}
