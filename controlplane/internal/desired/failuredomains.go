package desired

import (
	"cmp"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// domain is a failure domain for control planes, with how many Machines are to stay in it.
type domain struct {
	name     string
	machines int
}

type domains []domain

// domainsOf are the failure domains of a cluster, by name.
func domainsOf(f *facts.Facts) domains {
	var all domains
	for _, d := range f.Cluster.Status.FailureDomains {
		if !ptr.Deref(d.ControlPlane, false) {
			continue
		}
		found := domain{name: d.Name}
		for _, m := range f.Machines {
			if m.Spec.FailureDomain == d.Name && m.DeletionTimestamp.IsZero() {
				found.machines++
			}
		}
		all = append(all, found)
	}
	slices.SortFunc(all, func(a, b domain) int { return cmp.Compare(a.name, b.name) })
	return all
}

// next is the failure domain with the fewest Machines, and counts one more in it; empty: there is none. Among equals
// the turn of a slot decides, for a Machine that the cache has not seen must not get another one (util/failuredomains
// of Cluster API picks any of them).
func (all domains) next(index int) string {
	if len(all) == 0 {
		return ""
	}
	best := index % len(all)
	for i := range all {
		if at := (index + i) % len(all); all[at].machines < all[best].machines {
			best = at
		}
	}
	all[best].machines++
	return all[best].name
}
