package main

import (
	"context"
	"slices"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
)

// managers that are measured.
var managers = []string{env.Bootstrap, env.ControlPlane}

// countRequests counts the requests of the managers from apply to Available, those that follow, and those in the idle time after that.
func (b *bench) countRequests(ctx context.Context, r *report, begin, available time.Time) error {
	idle, err := b.awaitSilence(ctx, available)
	if err != nil {
		return err
	}
	select {
	case <-time.After(b.options.idle):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for _, name := range managers {
		all, err := b.lab.Env.Requests(b.lab.Env.Manager(name).User, time.Time{})
		if err != nil {
			return err
		}
		r.manager(name).Requests = requestCounts{
			Installation: count(all, begin, available),
			Afterwards:   count(all, available, idle),
			Idle:         count(all, idle, idle.Add(b.options.idle)),
			Start:        count(all, time.Time{}, begin),
		}
	}
	return nil
}

const (
	// silence is how long no manager may ask for anything before the idle time begins.
	silence = 5 * time.Second
	// patience is after how long it begins anyway.
	patience = time.Minute
)

// awaitSilence returns when the managers have been silent for a while, and since when they are.
func (b *bench) awaitSilence(ctx context.Context, since time.Time) (time.Time, error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		last := since
		for _, name := range managers {
			requests, err := b.lab.Env.Requests(b.lab.Env.Manager(name).User, since)
			if err != nil {
				return time.Time{}, err
			}
			for _, request := range requests.Work() {
				if request.Time.After(last) {
					last = request.Time
				}
			}
		}
		if time.Since(last) > silence || time.Since(since) > patience {
			return time.Now(), nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
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
		Total: len(work), By: work.Count(), Leases: len(leases), Watches: len(watches), Discovery: len(within) - len(work) - len(leases) - len(watches),
	}
}
