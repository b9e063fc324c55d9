package bench

import (
	"slices"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
)

// requestsOf returns the requests of a manager to the hub so far.
func (b *bench) requestsOf(name string) (audit.Requests, error) {
	more, err := b.hub.Next()
	if err != nil {
		return nil, err
	}
	for _, request := range more {
		manager := b.managers.NameOf(request.User)
		b.requests[manager] = append(b.requests[manager], request)
	}
	return b.requests[name], nil
}

// count counts the requests of a time by their purpose.
func count(all audit.Requests, begin, end time.Time) requestCount {
	within := all.Where(func(r audit.Request) bool { return !r.Time.Before(begin) && r.Time.Before(end) })
	work := within.Work()
	leases := within.Where(func(r audit.Request) bool { return r.Resource == "leases" })
	watches := within.Where(func(r audit.Request) bool {
		return r.Resource != "" && r.Resource != "leases" && !slices.Contains(work, r)
	})
	return requestCount{
		Total: len(work), By: work.Count(), Leases: len(leases), Watches: len(watches),
		Discovery: len(within) - len(work) - len(leases) - len(watches),
	}
}
