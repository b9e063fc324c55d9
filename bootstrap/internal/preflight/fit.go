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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// misfit says why a host is none for the Machine; it is empty when it is one. from are those from which CAPM3 takes one.
func misfit(f *facts.Facts, host *metal3.Host, selector labels.Selector, from *pool) string {
	if why := metal3.UnavailableReason(host, metal3.NodeReuseName(f.InfraMachine)); why != "" {
		return assisted.RedactURLs(why)
	}
	switch {
	case !selector.Matches(labels.Set(host.Labels)):
		return "labels do not match hostSelector " + selector.String()
	case !from.hosts.Has(host):
		return "others come first, which the label " + metal3.NodeReuseLabel + " keeps for the Machine"
	case len(from.near) > 0 && !from.near.Has(host):
		return "others come first, which are in the failure domain " + from.domain
	}
	return unfit(f, host)
}

// unfit says what a host lacks that CAPM3 does not look at: if it is given to the Machine it is discovered, and not bound.
func unfit(f *facts.Facts, host *metal3.Host) string {
	if why := contradicted(f, host); why != "" {
		return bound.Cause(why)
	}
	if why := belowRequirements(f, host); why != "" {
		return why
	}
	if why := desired.HostnameProblem(f, host); why != "" {
		return assisted.RedactURLs(why)
	}
	if !f.Fenced() {
		return ""
	}
	if err := desired.FencingProblem(host); err != nil {
		return assisted.RedactURLs(err.Error())
	}
	return ""
}

// pool is the hosts from which CAPM3 takes the one of a Metal3Machine.
type pool struct {
	// hosts are those that may be given to it: those that are kept for it, where there are some, else all others that are to be had.
	hosts sets.Set[*metal3.Host]
	// near are those of them in its failure domain: they come first. domain is that one; empty: it has none, or hosts are kept for it, of which Metal3 takes any.
	near   sets.Set[*metal3.Host]
	domain string
	// waiting is a host that is kept for it and is not available yet: it is given no other meanwhile.
	waiting *metal3.Host
}

// poolOf is that of a Metal3Machine with a selector of hosts.
func poolOf(f *facts.Facts, machine *unstructured.Unstructured, selector labels.Selector) *pool {
	p, reuse := &pool{near: sets.New[*metal3.Host]()}, metal3.NodeReuseName(machine)
	kept, free := sets.New[*metal3.Host](), sets.New[*metal3.Host]()
	for _, host := range f.Hosts {
		switch {
		case !selector.Matches(labels.Set(host.Labels)):
		case metal3.IsExpected(host, reuse):
			p.waiting = host
		case metal3.UnavailableReason(host, reuse) != "":
		case metal3.IsReservedFor(host, reuse):
			kept.Insert(host)
		default:
			free.Insert(host)
		}
	}
	if len(kept) > 0 {
		p.hosts = kept
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

// belowRequirements compares what the inspection found with hostRequirements. What it did not find is left to the discovery.
func belowRequirements(f *facts.Facts, host *metal3.Host) string {
	wanted, found := f.Config.Spec.HostRequirements, host.Status.HardwareDetails
	if wanted == nil || found == nil {
		return ""
	}
	var missing []string
	if cores := found.CPU.Count; cores > 0 && cores < int(wanted.MinCPUCores) {
		missing = append(missing, fmt.Sprintf("%s, not %d", english.Plural(cores, "CPU core", ""), wanted.MinCPUCores))
	}
	if mebibytes := int64(found.RAMMebibytes); mebibytes > 0 && wanted.MinMemory != nil && mebibytes<<20 < wanted.MinMemory.Value() {
		missing = append(missing, fmt.Sprintf("%d MiB of memory, not %s", mebibytes, wanted.MinMemory))
	}
	if largest := metal3.LargestDisk(found.Storage); largest > 0 && wanted.MinDiskSize != nil && largest < wanted.MinDiskSize.Value() {
		missing = append(missing, fmt.Sprintf("no disk above %d GiB, not %s", largest>>30, wanted.MinDiskSize))
	}
	if len(missing) == 0 {
		return ""
	}
	return "below spec.hostRequirements: " + strings.Join(missing, ", ")
}
