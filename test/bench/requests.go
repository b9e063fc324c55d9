package main

import (
	"slices"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
)

// managers that are measured.
var managers = []string{env.Bootstrap, env.ControlPlane}

// asked returns what a manager has asked the hub for so far.
func (b *bench) asked(name string) (audit.Requests, error) {
	more, err := b.hub.Next()
	if err != nil {
		return nil, err
	}
	for _, request := range more {
		for _, manager := range managers {
			if request.User == b.lab.Env.Manager(manager).User {
				b.requests[manager] = append(b.requests[manager], request)
			}
		}
	}
	return b.requests[name], nil
}

// count tells how many requests there were in a time, by what they were for.
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
