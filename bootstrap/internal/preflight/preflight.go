// Package preflight reports, before a server is started, whether a BareMetalHost exists for a Machine: which
// ones fit, and why the others do not. It only advises: the infrastructure provider chooses.
package preflight

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/hostnetwork"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/hostrole"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3/choice"
)

// Host returns the condition HostAvailable. It is nil if the Machine does not use Metal3, or if its host is
// installed without an error. An error is reported as long as the Machine has the host: a Machine that is
// being deleted waits until the host is deprovisioned.
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

func available(reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: bootstrapv1.HostAvailableCondition, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func unavailable(reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: bootstrapv1.HostAvailableCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// released reports whether a Machine that is being deleted waits for the deprovisioning of its host, which
// takes hours if disks are cleaned.
func released(f *facts.Facts) bool {
	return f.Host != nil && f.InfraMachine.GetDeletionTimestamp() != nil
}

// claimed returns the condition for a host that another consumer took.
func claimed(f *facts.Facts) *metav1.Condition {
	return unavailable(
		bootstrapv1.NoHostFitsReason,
		fmt.Sprintf(
			"BareMetalHost %s/%s, which was assigned to %s %s, names another consumer in spec.consumerRef. The provider does not use it until that "+
				"changes. Find out which other client uses hosts of this namespace",
			f.TakenHost.Namespace,
			f.TakenHost.Name,
			f.InfraMachine.GetKind(),
			f.InfraMachine.GetName(),
		),
	)
}

// chosen returns the condition for the host of the Machine.
func chosen(f *facts.Facts) *metav1.Condition {
	host := "BareMetalHost " + f.Host.Namespace + "/" + f.Host.Name
	annotation := metal3.UnmanagedAnnotation(f.Host)
	switch {
	case f.Host.Status.ErrorMessage != "":
		return unavailable(bootstrapv1.HostFailedReason, fmt.Sprintf("%s: %s", host, assisted.RedactURLs(metal3.ErrorOf(f.Host))))
	case annotation != "":
		return unavailable(
			bootstrapv1.HostUnmanagedReason,
			fmt.Sprintf("%s has the annotation %s: the Bare Metal Operator ignores the host until the annotation is removed", host, annotation),
		)
	case released(f):
		return available(bootstrapv1.HostChosenReason, host+" is being deprovisioned")
	case f.ApprovedAgent() == nil && len(f.Claims(f.Host)) > 0:
		return unavailable(bootstrapv1.ServerInUseReason, host+" describes a server that is in use: "+bound.List(f.Claims(f.Host)))
	case f.ApprovedAgent() == nil && metal3.WrongBMC(f.Host) != "":
		return unavailable(bootstrapv1.BMCOfAnotherServerReason, host+": "+metal3.WrongBMC(f.Host))
	case hostrole.Fenced(f) && f.ApprovedAgent() == nil && desired.FencingProblem(f.Host) != nil:
		return unavailable(bootstrapv1.FencingCredentialsUnusableReason, assisted.RedactURLs(desired.FencingProblem(f.Host).Error()))
	case f.ApprovedAgent() == nil && desired.HostnameProblem(f, f.Host) != "":
		return unavailable(
			bootstrapv1.NoHostFitsReason,
			fmt.Sprintf("%s: %s. Set %s", host, assisted.RedactURLs(desired.HostnameProblem(f, f.Host)), desired.HostnameSource(f)),
		)
	case hostnetwork.Mismatch(f) != "":
		return unavailable(bootstrapv1.NMStateConfigMismatchReason, hostnetwork.Mismatch(f))
	case metal3.CriticalHealth(f.Host):
		return unavailable(bootstrapv1.HostUnhealthyReason, fmt.Sprintf("%s: %s. Repair its server. To use another host, set the annotation "+
			"capm3.metal3.io/unhealthy on the BareMetalHost and delete the Machine, which wipes this host", host, choice.CriticalHealthMessage))
	case metal3.HealthWarning(f.Host):
		return available(bootstrapv1.HostChosenReason, host+": its BMC reports a warning (condition Healthy)")
	}
	return available(bootstrapv1.HostChosenReason, host)
}

// Pending reports whether a BareMetalHost that the Machine may get is still being registered, inspected or prepared. Until
// that ends, it is normal that no host fits.
func Pending(f *facts.Facts) bool {
	if f.InfraMachine == nil || f.TakenHost != nil || !f.NeedsHost() {
		return false
	}
	selector, err := metal3.HostSelector(f.InfraMachine)
	reuse := metal3.NodeReuseName(f.InfraMachine)
	return err == nil && slices.ContainsFunc(f.Hosts, func(host *metal3.Host) bool {
		return selector.Matches(labels.Set(host.Labels)) && host.Status.ErrorMessage == "" && metal3.MayBeChosen(host, reuse) &&
			metal3.UnavailableReason(host, reuse) != ""
	})
}

// candidates returns the condition for the hosts that the Machine may get.
func candidates(f *facts.Facts) *metav1.Condition {
	from, err := choice.PoolOf(f.InfraMachine, f.Hosts)
	if err != nil {
		return unavailable(bootstrapv1.NoHostFitsReason, fmt.Sprintf("%s %s: %v", f.InfraMachine.GetKind(), f.InfraMachine.GetName(), err))
	}
	namespace := f.InfraMachine.GetNamespace()
	switch {
	case f.Hosts == nil:
		return unavailable(bootstrapv1.NoHostFitsReason, "this hub does not serve BareMetalHosts: install the Bare Metal Operator")
	case len(f.Hosts) == 0:
		return unavailable(bootstrapv1.NoHostFitsReason, fmt.Sprintf("namespace %s has no BareMetalHost: create one for each Machine", namespace))
	}
	if expected := from.Expected(); expected != "" {
		return unavailable(bootstrapv1.NoHostFitsReason, expected)
	}
	var fitting []string
	mismatched := mismatched{}
	for _, host := range f.Hosts {
		if reason := mismatch(f, host, from); reason != "" {
			mismatched[reason] = append(mismatched[reason], host.Name)
		} else {
			fitting = append(fitting, host.Name)
		}
	}
	if len(fitting) == 0 {
		return unavailable(bootstrapv1.NoHostFitsReason, fmt.Sprintf("no BareMetalHost in namespace %s fits: %s", namespace, mismatched))
	}
	if older := competitors(f); older != nil {
		message := fmt.Sprintf(
			"not enough BareMetalHosts: %s fit, but older %s wait for hosts as well: %s. Add BareMetalHosts or scale down",
			list(fitting),
			metal3.MachineKind+"s",
			list(older),
		)
		if len(mismatched) > 0 {
			message += "; no other host fits: " + mismatched.String()
		}
		return unavailable(bootstrapv1.TooFewHostsReason, message)
	}
	return fits(f, from, fitting)
}

// fits returns the condition for hosts that fit, which static networks or the failure domain may restrict.
func fits(f *facts.Facts, from *choice.Pool, fitting []string) *metav1.Condition {
	if without := unaddressed(f, fitting); len(without) == len(fitting) {
		return unavailable(
			bootstrapv1.NMStateConfigMismatchReason,
			fmt.Sprintf(
				"no NMStateConfig that matches %s has a MAC address of a BareMetalHost that fits (%s): the host would boot without static addresses; "+
					"correct spec.interfaces of the NMStateConfigs",
				hostnetwork.Selector(f),
				list(fitting),
			),
		)
	} else if len(without) > 0 {
		return available(
			bootstrapv1.HostsFitReason,
			fmt.Sprintf(
				"BareMetalHosts that fit: %s; no NMStateConfig that matches %s has a MAC address of: %s%s",
				list(fitting),
				hostnetwork.Selector(f),
				list(without),
				warnings(f, fitting),
			),
		)
	}
	message := "BareMetalHosts that fit: " + list(fitting)
	if from.Domain != "" && len(from.Near) == 0 {
		message += fmt.Sprintf(
			"; none has the failure domain %s of the Machine (label %s): Metal3 takes any of them",
			from.Domain,
			metal3.FailureDomainLabel,
		)
	}
	return available(bootstrapv1.HostsFitReason, message+warnings(f, fitting))
}

// warnings names the hosts whose BMC reports a warning.
func warnings(f *facts.Facts, names []string) string {
	var warned []string
	for _, host := range f.Hosts {
		if slices.Contains(names, host.Name) && metal3.HealthWarning(host) {
			warned = append(warned, host.Name)
		}
	}
	if len(warned) == 0 {
		return ""
	}
	return "; the BMC reports a warning (condition Healthy) of: " + list(warned)
}

// unaddressed returns the hosts without static addresses, if there are NMStateConfigs for other hosts.
func unaddressed(f *facts.Facts, names []string) []string {
	if len(f.Networks) == 0 {
		return nil
	}
	var without []string
	for _, host := range f.Hosts {
		known := metal3.IdentityOf(host).MACs
		if slices.Contains(names, host.Name) && len(known) > 0 && !hostnetwork.HasStaticAddresses(f, known) {
			without = append(without, host.Name)
		}
	}
	return without
}

// mismatched are names of hosts by why they do not fit.
type mismatched map[string][]string

// String groups the hosts by reason, the rarest reason first, because it is the most useful one.
func (m mismatched) String() string {
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
		groups[i] = list(m[why]) + " (" + why + ")"
	}
	return bound.Join(groups, "reason")
}

// list returns the first names, and the number of the others.
func list(names []string) string { return bound.List(names) }
