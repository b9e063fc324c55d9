// Package preflight says, before a server is touched, whether there is a BareMetalHost for a Machine: which ones fit, and why the others do not. It advises: the
// infrastructure provider chooses.
package preflight

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Host is the condition HostAvailable; nil when there is nothing to say: the Machine is not Metal3's, or its host is installed and nothing is wrong with it. What is wrong is told as long as the Machine
// has the host: one that is being deleted waits until the host could be deprovisioned.
func Host(f *facts.Facts) *metav1.Condition {
	switch {
	case !f.HasBareMetalHost() || f.WasInstalled() && !released(f) && (f.Host == nil || f.Host.Status.ErrorMessage == ""):
		return nil
	case f.Host != nil:
		return chosen(f)
	case f.TakenHost != nil && f.InfraMachine.GetDeletionTimestamp() == nil:
		return claimed(f)
	case !f.NeedsHost():
		return nil
	}
	return candidates(f)
}

func yes(reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: bootstrapv1.HostAvailableCondition, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func no(reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: bootstrapv1.HostAvailableCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// released reports whether a Machine that goes waits for its host to be deprovisioned, which may take hours where disks are cleaned.
func released(f *facts.Facts) bool {
	return f.Host != nil && f.InfraMachine.GetDeletionTimestamp() != nil
}

// claimed is about a host that somebody else took.
func claimed(f *facts.Facts) *metav1.Condition {
	return no(bootstrapv1.NoHostFitsReason, fmt.Sprintf("BareMetalHost %s/%s, which was given to %s %s, says by spec.consumerRef that it is another's: it is left alone as long as it does; find out who else takes hosts of this namespace",
		f.TakenHost.Namespace, f.TakenHost.Name, f.InfraMachine.GetKind(), f.InfraMachine.GetName()))
}

// chosen is about the host that the Machine has.
func chosen(f *facts.Facts) *metav1.Condition {
	host := "BareMetalHost " + f.Host.Namespace + "/" + f.Host.Name
	held := metal3.UnmanagedAnnotation(f.Host)
	switch {
	case f.Host.Status.ErrorMessage != "":
		return no(bootstrapv1.HostFailedReason, fmt.Sprintf("%s: %s", host, assisted.RedactURLs(metal3.ErrorOf(f.Host))))
	case held != "":
		return no(bootstrapv1.HostUnmanagedReason, fmt.Sprintf("%s has the annotation %s: the Bare Metal Operator does nothing with it until that is taken off", host, held))
	case released(f):
		return yes(bootstrapv1.HostChosenReason, host+" is being deprovisioned")
	case f.ApprovedAgent() == nil && len(f.Claims(f.Host)) > 0:
		return no(bootstrapv1.ServerInUseReason, host+" stands for a server that is in use: "+bound.List(f.Claims(f.Host)))
	case f.ApprovedAgent() == nil && metal3.WrongBMC(f.Host) != "":
		return no(bootstrapv1.BMCOfAnotherServerReason, host+": "+metal3.WrongBMC(f.Host))
	case f.Fenced() && f.ApprovedAgent() == nil && desired.FencingProblem(f.Host) != nil:
		return no(bootstrapv1.FencingCredentialsUnusableReason, assisted.RedactURLs(desired.FencingProblem(f.Host).Error()))
	case f.ApprovedAgent() == nil && desired.HostnameProblem(f, f.Host) != "":
		return no(bootstrapv1.NoHostFitsReason, fmt.Sprintf("%s: %s. Set %s", host, assisted.RedactURLs(desired.HostnameProblem(f, f.Host)), desired.NameGivenBy(f)))
	case f.NetworkMismatch() != "":
		return no(bootstrapv1.NMStateConfigMismatchReason, f.NetworkMismatch())
	}
	return yes(bootstrapv1.HostChosenReason, host)
}

// candidates is about the hosts that the Machine may be given.
func candidates(f *facts.Facts) *metav1.Condition {
	selector, err := metal3.HostSelector(f.InfraMachine)
	if err != nil {
		return no(bootstrapv1.NoHostFitsReason, fmt.Sprintf("%s %s: %v", f.InfraMachine.GetKind(), f.InfraMachine.GetName(), err))
	}
	namespace := f.InfraMachine.GetNamespace()
	switch {
	case f.Hosts == nil:
		return no(bootstrapv1.NoHostFitsReason, "this hub does not serve BareMetalHosts: install the Bare Metal Operator")
	case len(f.Hosts) == 0:
		return no(bootstrapv1.NoHostFitsReason, fmt.Sprintf("namespace %s has no BareMetalHost: create one for each Machine", namespace))
	}
	from := poolOf(f, f.InfraMachine, selector)
	if kept := from.waiting; kept != nil {
		return no(bootstrapv1.NoHostFitsReason, fmt.Sprintf("Metal3 waits for BareMetalHost %s (%s), which the label %s keeps for the Machine, and gives it no other meanwhile", kept.Name,
			metal3.UnavailableReason(kept, metal3.NodeReuseName(f.InfraMachine)), metal3.NodeReuseLabel))
	}
	var fitting []string
	misfits := misfits{}
	for _, host := range f.Hosts {
		if why := misfit(f, host, selector, from); why != "" {
			misfits[why] = append(misfits[why], host.Name)
		} else {
			fitting = append(fitting, host.Name)
		}
	}
	if len(fitting) == 0 {
		return no(bootstrapv1.NoHostFitsReason, fmt.Sprintf("of the BareMetalHosts of namespace %s none fits: %s", namespace, misfits))
	}
	if older := ahead(f); older != nil {
		message := fmt.Sprintf("not enough BareMetalHosts: %s fit, but older %s wait for hosts as well: %s. Add BareMetalHosts or scale down", some(fitting), metal3.MachineKind+"s", some(older))
		if len(misfits) > 0 {
			message += "; of the others none fits: " + misfits.String()
		}
		return no(bootstrapv1.TooFewHostsReason, message)
	}
	if without := unaddressed(f, fitting); len(without) == len(fitting) {
		return no(bootstrapv1.NMStateConfigMismatchReason, fmt.Sprintf("no NMStateConfig that matches %s has a MAC address of a BareMetalHost that fits (%s): the host would boot without static addresses; "+
			"correct spec.interfaces of the NMStateConfigs", f.SelectedNetworks(), some(fitting)))
	} else if len(without) > 0 {
		return yes(bootstrapv1.HostsFitReason, fmt.Sprintf("BareMetalHosts that fit: %s; no NMStateConfig that matches %s has a MAC address of: %s", some(fitting), f.SelectedNetworks(), some(without)))
	}
	message := "BareMetalHosts that fit: " + some(fitting)
	if from.domain != "" && len(from.near) == 0 {
		message += fmt.Sprintf("; none has the failure domain %s of the Machine (label %s): Metal3 takes any of them", from.domain, metal3.FailureDomainLabel)
	}
	return yes(bootstrapv1.HostsFitReason, message)
}

// unaddressed returns which hosts have no static addresses, where there are NMStateConfigs for those that have.
func unaddressed(f *facts.Facts, names []string) []string {
	if len(f.Networks) == 0 {
		return nil
	}
	var without []string
	for _, host := range f.Hosts {
		known := metal3.IdentityOf(host).MACs
		if slices.Contains(names, host.Name) && len(known) > 0 && !f.Addressed(known) {
			without = append(without, host.Name)
		}
	}
	return without
}

// misfits are names of hosts by why they do not fit.
type misfits map[string][]string

// String groups the hosts, the least common reason first: it is the one to look at.
func (m misfits) String() string {
	groups := make([]string, 0, len(m))
	for why := range m {
		groups = append(groups, why)
	}
	slices.SortFunc(groups, func(a, b string) int {
		if len(m[a]) != len(m[b]) {
			return len(m[a]) - len(m[b])
		}
		return strings.Compare(a, b)
	})
	for i, why := range groups {
		groups[i] = some(m[why]) + " (" + why + ")"
	}
	return bound.Join(groups, "reason")
}

// some names the first of what is in a list.
func some(names []string) string { return bound.List(names) }
