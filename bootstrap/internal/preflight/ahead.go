package preflight

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3/choice"
)

// competitors returns the older Metal3Machines that compete for the hosts that fit this one. It returns nil
// if there are enough hosts for all of them. It ignores the host requirements of the other
// OpenshiftAssistedConfigs.
func competitors(f *facts.Facts) []string {
	own := slices.IndexFunc(f.Waiting, func(machine *unstructured.Unstructured) bool { return machine.GetName() == f.InfraMachine.GetName() })
	if own < 0 {
		return nil
	}
	search := newSearch(f)
	fits := search.fittingOwn()
	if own < len(fits) {
		return nil // one host remains in any case
	}
	var older []string
	for _, competitor := range search.competingMachines(f.Waiting[:own], fits) {
		older = append(older, f.Waiting[competitor].GetName())
	}
	return older
}

// search assigns hosts to the Metal3Machines of a namespace. Machines of one template fit the same hosts, so
// that hosts are compared with each template only once. With 2,000 hosts and 600 waiting Machines, comparing
// all pairs at every change of a host would occupy a processor for minutes.
type search struct {
	*facts.Facts
	// classes are the hosts that Machines may get, by the properties that decide it.
	classes map[string]*class
	// owner is the index of the Machine that got a host, by the index of the host; -1 for none.
	owner []int
	// exhausted are hosts from which no further Machine can get a host: all Machines that could move have
	// moved (Hungarian forest).
	exhausted []bool
	// compared counts comparisons of a template with a host; visited counts the hosts that were tried for a
	// Machine.
	compared, visited int
}

// class holds the Metal3Machines that fit the same hosts.
type class struct {
	// hosts are indexes of Facts.Hosts.
	hosts []int
	// failed is true if no host was left for a Machine of the class, so that none is left for the next one.
	failed bool
}

func newSearch(f *facts.Facts) *search {
	s := &search{Facts: f, classes: map[string]*class{}, owner: make([]int, len(f.Hosts)), exhausted: make([]bool, len(f.Hosts))}
	for i := range s.owner {
		s.owner[i] = -1
	}
	return s
}

// classOf returns the class of a Metal3Machine by its hostSelector, node reuse and failure domain.
func (s *search) classOf(machine *unstructured.Unstructured) *class {
	selector, err := metal3.HostSelector(machine)
	if err != nil {
		return &class{failed: true}
	}
	domain, _, _ := unstructured.NestedString(machine.Object, "spec", "failureDomain")
	key := strings.Join([]string{selector.String(), metal3.NodeReuseName(machine), domain}, "\n")
	if known := s.classes[key]; known != nil {
		return known
	}
	found := &class{}
	s.classes[key] = found
	s.compared += len(s.Hosts)
	from, err := choice.PoolOf(machine, s.Hosts)
	if err != nil || from.Waiting != nil {
		return found
	}
	for i, host := range s.Hosts {
		if from.Hosts.Has(host) {
			found.hosts = append(found.hosts, i)
		}
	}
	return found
}

// fittingOwn returns the hosts that the own Machine may get and that fit its OpenshiftAssistedConfig.
func (s *search) fittingOwn() []int {
	var fitting []int
	for _, host := range s.classOf(s.InfraMachine).hosts {
		if unsuitable(s.Facts, s.Hosts[host]) == "" {
			fitting = append(fitting, host)
		}
	}
	return fitting
}

// competingMachines assigns hosts to older Machines in their order, and then to the own Machine, for which some hosts
// fit. It assigns as many as possible: a maximum matching by augmenting paths. It returns the Machines that
// keep the own Machine without a host; nil if it has one.
func (s *search) competingMachines(older []*unstructured.Unstructured, own []int) []int {
	classes := make([]*class, len(older))
	for i, machine := range older {
		if classes[i] = s.classOf(machine); classes[i].failed {
			continue
		}
		tried := slices.Clone(s.exhausted)
		if !s.place(i, classes[i].hosts, classes, tried) {
			classes[i].failed, s.exhausted = true, tried
		}
	}
	tried := make([]bool, len(s.Hosts))
	if s.place(len(older), own, classes, tried) {
		return nil
	}
	found := sets.New[int]()
	for host, was := range tried {
		if was {
			found.Insert(s.owner[host])
		}
	}
	return sets.List(found)
}

// place assigns one of the hosts to a Machine: a free host, or else one whose Machine can move to another
// host. tried marks the hosts that were tried.
func (s *search) place(machine int, hosts []int, classes []*class, tried []bool) bool {
	for _, host := range hosts {
		s.visited++
		if s.owner[host] < 0 {
			s.owner[host], tried[host] = machine, true
			return true
		}
	}
	for _, host := range hosts {
		s.visited++
		if tried[host] {
			continue
		}
		tried[host] = true
		if s.place(s.owner[host], classes[s.owner[host]].hosts, classes, tried) {
			s.owner[host] = machine
			return true
		}
	}
	return false
}
