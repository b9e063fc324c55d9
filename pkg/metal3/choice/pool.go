// Package choice has the rules by which CAPM3 chooses the BareMetalHost of a Machine. It also has the reasons that make a
// host unsuitable although CAPM3 may choose it.
package choice

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Pool holds the hosts from which CAPM3 chooses the host of a Metal3Machine.
type Pool struct {
	// Hosts are the possible hosts: the reserved ones if there are any, else all other available ones.
	Hosts sets.Set[*metal3.Host]
	// Near are the hosts in the failure domain of the Machine, which CAPM3 prefers. Domain is the failure
	// domain. It is "" if the Machine has none, or if hosts are reserved for it, of which Metal3 takes any.
	Near   sets.Set[*metal3.Host]
	Domain string
	// Waiting is a reserved host that is not available yet. The Machine gets no other host meanwhile.
	Waiting *metal3.Host

	selector labels.Selector
	reuse    string
}

// PoolOf returns the pool of a Metal3Machine among the hosts of its namespace. It returns an error if the host selector
// of the Metal3Machine is invalid: CAPM3 then chooses no host.
func PoolOf(machine *unstructured.Unstructured, hosts []*metal3.Host) (*Pool, error) {
	selector, err := metal3.HostSelector(machine)
	if err != nil {
		return nil, err
	}
	p := &Pool{Near: sets.New[*metal3.Host](), selector: selector, reuse: metal3.NodeReuseName(machine)}
	reserved, free := sets.New[*metal3.Host](), sets.New[*metal3.Host]()
	for _, host := range hosts {
		switch {
		case !selector.Matches(labels.Set(host.Labels)):
		case metal3.IsExpected(host, p.reuse):
			p.Waiting = host
		case metal3.UnavailableReason(host, p.reuse) != "":
		case metal3.IsReservedFor(host, p.reuse):
			reserved.Insert(host)
		default:
			free.Insert(host)
		}
	}
	if len(reserved) > 0 {
		p.Hosts = reserved
		return p, nil
	}
	p.Hosts = free
	p.Domain, _, _ = unstructured.NestedString(machine.Object, "spec", "failureDomain")
	for host := range p.Hosts {
		if p.Domain != "" && host.Labels[metal3.FailureDomainLabel] == p.Domain {
			p.Near.Insert(host)
		}
	}
	return p, nil
}

// Excludes returns why CAPM3 does not choose a host, for messages. It is empty if CAPM3 may choose the host.
func (p *Pool) Excludes(host *metal3.Host) string {
	if reason := metal3.UnavailableReason(host, p.reuse); reason != "" {
		return reason
	}
	switch {
	case !p.selector.Matches(labels.Set(host.Labels)):
		return "labels do not match hostSelector " + p.selector.String()
	case !p.Hosts.Has(host):
		return "not considered: Metal3 first uses hosts that the label " + metal3.NodeReuseLabel + " reserves for the Machine"
	case len(p.Near) > 0 && !p.Near.Has(host):
		return "not considered: Metal3 first uses hosts in the failure domain " + p.Domain
	}
	return ""
}

// Expected returns why CAPM3 waits for the reserved host of the pool, for messages. It is empty if CAPM3 waits for none.
func (p *Pool) Expected() string {
	if p.Waiting == nil {
		return ""
	}
	return "Metal3 waits for BareMetalHost " + p.Waiting.Name + " (" + metal3.UnavailableReason(p.Waiting, p.reuse) + "), which the label " +
		metal3.NodeReuseLabel + " reserves for the Machine, and uses no other host meanwhile"
}
