package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/seed"
)

const (
	// silence is how long nobody asks for anything before the managers count as quiet.
	silence = 10 * time.Second
	// working is how much processor time between two looks, which are a second apart, is no idleness.
	working = 200 * time.Millisecond
	// patience is after how long it is given up to wait for that.
	patience = 10 * time.Minute
)

// managers that are measured.
var managers = []string{env.ControlPlane, env.Bootstrap}

// phase is a part of the run in which requests are collected.
type phase struct {
	begin time.Time
	// hub are the requests of the managers to the hub, sites those to the API of the clusters.
	hub, sites audit.Requests
}

// collect adds what was asked since it was called last.
func (s *scale) collect(p *phase) error {
	asked, err := s.hub.Next()
	if err != nil {
		return err
	}
	p.hub = append(p.hub, asked.Where(s.ours)...)
	if s.sites == nil {
		return nil
	}
	asked, err = s.sites.Next()
	p.sites = append(p.sites, asked...)
	return err
}

// ours reports whether a manager has asked.
func (s *scale) ours(r audit.Request) bool {
	return slices.Contains(s.users(), r.User)
}

// busy reports whether a request shows that a manager is not quiet. Leases are renewed and watches are begun again for
// ever; health is asked for with no resource.
func busy(r audit.Request) bool {
	return r.Resource != "" && noWatch(r) && !r.Housekeeping()
}

// noWatch reports whether a request is none of those that begin again in each cluster, of which all are in one API server here.
func noWatch(r audit.Request) bool { return r.Verb != "watch" }

// begun reports whether each of the users watches something: a manager that waits for its lease is silent, too.
func begun(asked audit.Requests, users []string) bool {
	watching := sets.New[string]()
	for _, r := range asked {
		if r.Verb == "watch" {
			watching.Insert(r.User)
		}
	}
	return watching.HasAll(users...)
}

// users are those as which the managers ask.
func (s *scale) users() (users []string) {
	for _, name := range managers {
		users = append(users, s.lab.Env.Manager(name).User)
	}
	return users
}

// awaitQuiet collects requests until there are none any more, and the managers do nothing: what they were answered may
// take longer to be taken in. Before, so many clusters must have been read. It returns how long it took from the
// beginning of the phase until the last request. When it does not come to that it is no error: the time is that of the
// patience.
func (s *scale) awaitQuiet(ctx context.Context, p *phase, clusters int) (time.Duration, error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last, worked, used := p.begin, p.begin, time.Duration(0)
	for hub, sites := 0, 0; ; hub, sites = len(p.hub), len(p.sites) {
		if err := s.collect(p); err != nil {
			return 0, err
		}
		asked := p.hub[hub:]
		if !s.http1 { // else the clusters are polled for ever
			asked = slices.Concat(asked, p.sites[sites:])
		}
		for _, r := range asked {
			if busy(r) && r.Time.After(last) {
				last = r.Time
			}
		}
		now, err := s.worked()
		if err != nil {
			return 0, err
		}
		if now-used > working {
			worked = time.Now()
		}
		used = now
		if begun(p.hub, s.users()) && seed.Read(p.sites) >= clusters && time.Since(last) > silence &&
			time.Since(worked) > silence || time.Since(p.begin) > patience {
			return last.Sub(p.begin), nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// worked is the processor time that the managers have used.
func (s *scale) worked() (total time.Duration, err error) {
	used, err := s.usage()
	for _, usage := range used {
		total += usage.CPU
	}
	return total, err
}

// startUp starts the managers, which must not run, and waits until they are quiet.
func (s *scale) startUp(ctx context.Context) (startReport, error) {
	if err := s.collect(&phase{}); err != nil { // what was before
		return startReport{}, err
	}
	p := &phase{begin: time.Now()}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, name := range managers {
		group.Go(func() error { return s.lab.Env.Manager(name).Start(groupCtx) })
	}
	if err := group.Wait(); err != nil {
		return startReport{}, err
	}
	profiled := s.beginProfiles(ctx, fmt.Sprintf("start-%d", s.looks+1))
	quiet, err := s.awaitQuiet(ctx, p, int(float64(s.own())*(1-s.dead)))
	if err := errors.Join(err, profiled()); err != nil {
		return startReport{}, err
	}
	r := newStartReport(p, func(r audit.Request) string { return s.nameOf(r.User) })
	r.QuietSeconds = seconds(quiet)
	return r, s.lookAtManagers(ctx, r.Managers)
}

func (s *scale) nameOf(user string) string {
	for _, name := range managers {
		if s.lab.Env.Manager(name).User == user {
			return name
		}
	}
	return user
}

// stopAll ends the managers.
func (s *scale) stopAll() {
	for _, name := range managers {
		s.lab.Env.Manager(name).Stop()
	}
}

// idle watches the managers for a while in which nothing happens.
func (s *scale) idleTime(ctx context.Context) (idleReport, error) {
	p, profiled := &phase{begin: time.Now()}, s.beginProfiles(ctx, "idle")
	before, err := s.usage()
	if err != nil {
		return idleReport{}, err
	}
	select {
	case <-time.After(s.idle):
	case <-ctx.Done():
		return idleReport{}, context.Cause(ctx)
	}
	after, err := s.usage()
	if err := errors.Join(err, profiled(), s.collect(p)); err != nil {
		return idleReport{}, err
	}
	r := idleReport{
		Seconds: seconds(s.idle), CPUSeconds: map[string]float64{}, Hub: p.hub.Unrest().Count(),
		SiteRequests: len(p.sites.Where(noWatch).Unrest()),
	}
	for _, name := range managers {
		r.CPUSeconds[name] = seconds(after[name].CPU - before[name].CPU)
	}
	return r, nil
}

func (s *scale) usage() (map[string]process.Usage, error) {
	used := map[string]process.Usage{}
	for _, name := range managers {
		usage, err := s.lab.Env.Manager(name).Usage()
		if err != nil {
			return nil, fmt.Errorf("a manager is gone: %w", err)
		}
		used[name] = usage
	}
	return used, nil
}
