package desired

import (
	"cmp"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// domain is a failure domain for control planes, with the number of Machines that stay in it.
type domain struct {
	name     string
	machines int
}

type domains []domain

// domainsOf returns the failure domains of a cluster, sorted by name.
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

// next returns the failure domain with the fewest Machines, and counts one more in it. It is empty if there
// is none. Among equal domains the index of the slot decides, because a Machine that the cache lacks must not
// get another domain. Cluster API's util/failuredomains picks any of them.
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
