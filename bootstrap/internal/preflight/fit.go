package preflight

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize/english"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/hostrole"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// mismatch returns why a host does not fit the Machine; "" if it fits. from is the pool from which CAPM3
// chooses.
func mismatch(f *facts.Facts, host *metal3.Host, selector labels.Selector, from *pool) string {
	if reason := metal3.UnavailableReason(host, metal3.NodeReuseName(f.InfraMachine)); reason != "" {
		return assisted.RedactURLs(reason)
	}
	switch {
	case !selector.Matches(labels.Set(host.Labels)):
		return "labels do not match hostSelector " + selector.String()
	case !from.hosts.Has(host):
		return "not considered: Metal3 first uses hosts that the label " + metal3.NodeReuseLabel + " reserves for the Machine"
	case len(from.near) > 0 && !from.near.Has(host):
		return "not considered: Metal3 first uses hosts in the failure domain " + from.domain
	}
	return unsuitable(f, host)
}

// unsuitable returns why a host would be discovered but not bound, or why its installation would probably fail. CAPM3
// does not check these reasons. It returns "" if there is none.
func unsuitable(f *facts.Facts, host *metal3.Host) string {
	if reason := serverConflict(f, host); reason != "" {
		return bound.Cause(reason)
	}
	if reason := belowRequirements(f, host); reason != "" {
		return reason
	}
	if reason := desired.HostnameProblem(f, host); reason != "" {
		return assisted.RedactURLs(reason)
	}
	if metal3.CriticalHealth(host) {
		return criticalHealth
	}
	if !hostrole.Fenced(f) {
		return ""
	}
	if err := desired.FencingProblem(host); err != nil {
		return assisted.RedactURLs(err.Error())
	}
	return ""
}

// criticalHealth is why a host does not fit whose server cannot be trusted with an installation.
const criticalHealth = "its BMC reports a critical error (condition Healthy)"

// pool holds the hosts from which CAPM3 chooses the host of a Metal3Machine.
type pool struct {
	// hosts are the possible hosts: the reserved ones if there are any, else all other available ones.
	hosts sets.Set[*metal3.Host]
	// near are the hosts in the failure domain of the Machine, which CAPM3 prefers. domain is the failure
	// domain. It is "" if the Machine has none, or if hosts are reserved for it, of which Metal3 takes any.
	near   sets.Set[*metal3.Host]
	domain string
	// waiting is a reserved host that is not available yet. The Machine gets no other host meanwhile.
	waiting *metal3.Host
}

// poolOf returns the pool of a Metal3Machine with a host selector.
func poolOf(f *facts.Facts, machine *unstructured.Unstructured, selector labels.Selector) *pool {
	p, reuse := &pool{near: sets.New[*metal3.Host]()}, metal3.NodeReuseName(machine)
	reserved, free := sets.New[*metal3.Host](), sets.New[*metal3.Host]()
	for _, host := range f.Hosts {
		switch {
		case !selector.Matches(labels.Set(host.Labels)):
		case metal3.IsExpected(host, reuse):
			p.waiting = host
		case metal3.UnavailableReason(host, reuse) != "":
		case metal3.IsReservedFor(host, reuse):
			reserved.Insert(host)
		default:
			free.Insert(host)
		}
	}
	if len(reserved) > 0 {
		p.hosts = reserved
		return p
	}
	p.hosts = free
	p.domain, _, _ = unstructured.NestedString(machine.Object, "spec", "failureDomain")
	for host := range p.hosts {
		if p.domain != "" && host.Labels[metal3.FailureDomainLabel] == p.domain {
			p.near.Insert(host)
		}
	}
	return p
}

// belowRequirements compares the inspected hardware with hostRequirements. Hardware that the inspection did
// not find is checked after the discovery.
func belowRequirements(f *facts.Facts, host *metal3.Host) string {
	wanted, found := f.Config.Spec.HostRequirements, host.Status.HardwareDetails
	if wanted == nil || found == nil {
		return ""
	}
	var missing []string
	if cores := found.CPU.Count; cores > 0 && cores < int(wanted.MinCPUCores) {
		missing = append(missing, fmt.Sprintf("%s (needs %d)", english.Plural(cores, "CPU core", ""), wanted.MinCPUCores))
	}
	if mebibytes := int64(found.RAMMebibytes); mebibytes > 0 && wanted.MinMemory != nil && mebibytes<<20 < wanted.MinMemory.Value() {
		missing = append(missing, fmt.Sprintf("%s memory (needs %s)", metal3.Size(mebibytes<<20), wanted.MinMemory))
	}
	if largest := metal3.LargestDisk(found.Storage); largest > 0 && wanted.MinDiskSize != nil && largest < wanted.MinDiskSize.Value() {
		missing = append(missing, fmt.Sprintf("no disk above %s (needs %s)", metal3.Size(largest), wanted.MinDiskSize))
	}
	if len(missing) == 0 {
		return ""
	}
	return "below spec.hostRequirements: " + strings.Join(missing, ", ")
}
