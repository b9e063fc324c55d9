package preflight

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// misfit says why a host is none for the Machine; it is empty when it is one.
func misfit(f *facts.Facts, host *metal3.Host, selector labels.Selector) string {
	if why := metal3.Unavailable(host); why != "" {
		return told(why)
	}
	if !selector.Matches(labels.Set(host.Labels)) {
		return "labels do not match hostSelector " + selector.String()
	}
	return belowRequirements(f, host)
}

// belowRequirements compares what the inspection found with hostRequirements. What it did not find is left to the discovery.
func belowRequirements(f *facts.Facts, host *metal3.Host) string {
	wanted, found := f.Config.Spec.HostRequirements, host.Status.HardwareDetails
	if wanted == nil || found == nil {
		return ""
	}
	var missing []string
	if cores := found.CPU.Count; cores > 0 && cores < int(wanted.MinCPUCores) {
		missing = append(missing, fmt.Sprintf("%d CPU cores, not %d", cores, wanted.MinCPUCores))
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

// ahead returns the older Metal3Machines that compete for the hosts that fit this one, where there are too few for all of them; else nil. What the OpenshiftAssistedConfigs
// of the others ask of hosts is not looked at.
func ahead(f *facts.Facts) []string {
	own := slices.IndexFunc(f.Waiting, func(machine *unstructured.Unstructured) bool { return machine.GetName() == f.InfraMachine.GetName() })
	if own < 0 {
		return nil
	}
	var fits [][]int
	for _, machine := range f.Waiting[:own+1] {
		fits = append(fits, available(f, machine))
	}
	if own < len(fits[own]) {
		return nil // there is one left whatever the others are given
	}
	var older []string
	for _, rival := range rivals(fits) {
		older = append(older, f.Waiting[rival].GetName())
	}
	return older
}

// available returns which hosts a Metal3Machine may be given; of the own one those that fit its OpenshiftAssistedConfig, too.
func available(f *facts.Facts, machine *unstructured.Unstructured) []int {
	selector, err := metal3.HostSelector(machine)
	if err != nil {
		return nil
	}
	var fitting []int
	for i, host := range f.Hosts {
		if metal3.Unavailable(host) != "" || !selector.Matches(labels.Set(host.Labels)) {
			continue
		}
		if machine.GetName() == f.InfraMachine.GetName() && belowRequirements(f, host) != "" {
			continue
		}
		fitting = append(fitting, i)
	}
	return fitting
}

// rivals gives hosts to Machines in their order, so that as many as possible have one: a maximum matching by augmenting paths. fits are the hosts that each may be given. It returns
// those that keep the last one from having a host; nil when it has one.
func rivals(fits [][]int) []int {
	owner := map[int]int{}
	var place func(machine int, tried sets.Set[int]) bool
	place = func(machine int, tried sets.Set[int]) bool {
		for _, host := range fits[machine] {
			if tried.Has(host) {
				continue
			}
			tried.Insert(host)
			if holder, taken := owner[host]; !taken || place(holder, tried) {
				owner[host] = machine
				return true
			}
		}
		return false
	}
	tried := sets.New[int]()
	for machine := range fits {
		if tried = sets.New[int](); place(machine, tried) && machine == len(fits)-1 {
			return nil
		}
	}
	found := sets.New[int]()
	for host := range tried {
		found.Insert(owner[host])
	}
	return sets.List(found)
}
