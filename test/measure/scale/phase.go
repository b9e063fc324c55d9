package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/managers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/seed"
)

const (
	// silence is the time without requests after which the managers are quiet.
	silence = 10 * time.Second
	// working is the processor time in a second from which the managers are not quiet.
	working = 200 * time.Millisecond
	// patience is the longest wait until the managers are quiet.
	patience = 10 * time.Minute
)

// phase is a part of the run, with its requests.
type phase struct {
	begin time.Time
	// hub are the requests of the managers to the hub, and sites the requests to the API of the clusters.
	hub, sites audit.Requests
}

// collect adds the requests since the last call.
func (s *scale) collect(p *phase) error {
	requests, err := s.hub.Next()
	if err != nil {
		return err
	}
	p.hub = append(p.hub, requests.Where(s.ours)...)
	if s.sites == nil {
		return nil
	}
	requests, err = s.sites.Next()
	p.sites = append(p.sites, requests...)
	return err
}

// ours reports whether a request is of a measured manager.
func (s *scale) ours(r audit.Request) bool {
	return slices.Contains(s.managers.Users(), r.User)
}

// busy reports whether a request shows that a manager is not quiet. Managers renew leases, restart watches and query
// health (without resource) continuously.
func busy(r audit.Request) bool {
	return r.Resource != "" && noWatch(r) && !r.Housekeeping()
}

// noWatch reports whether a request is no watch. Watches restart continuously.
func noWatch(r audit.Request) bool { return r.Verb != "watch" }

// begun reports whether each of the users watches objects. A manager that waits for its lease is silent, too.
func begun(requests audit.Requests, users []string) bool {
	watching := sets.New[string]()
	for _, r := range requests {
		if r.Verb == "watch" {
			watching.Insert(r.User)
		}
	}
	return watching.HasAll(users...)
}

// awaitQuiet collects requests until a number of clusters were read and the managers are quiet. Quiet managers also use
// no processor time, because they process answers after the last request. awaitQuiet returns the time from the begin of
// the phase until the last request. It returns no error if the managers are not quiet within patience.
func (s *scale) awaitQuiet(ctx context.Context, p *phase, clusters int) (time.Duration, error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last, worked, used := p.begin, p.begin, time.Duration(0)
	for hub, sites := 0, 0; ; hub, sites = len(p.hub), len(p.sites) {
		if err := s.collect(p); err != nil {
			return 0, err
		}
		requests := p.hub[hub:]
		if !s.http1 { // over HTTP/1.1 the clusters are polled continuously
			requests = slices.Concat(requests, p.sites[sites:])
		}
		for _, r := range requests {
			if busy(r) && r.Time.After(last) {
				last = r.Time
			}
		}
		now, err := s.managers.CPU()
		if err != nil {
			return 0, err
		}
		if now-used > working {
			worked = time.Now()
		}
		used = now
		if begun(p.hub, s.managers.Users()) && seed.Read(p.sites) >= clusters && time.Since(last) > silence &&
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

// startUp starts the stopped managers, and waits until they are quiet.
func (s *scale) startUp(ctx context.Context) (startReport, error) {
	if err := s.collect(&phase{}); err != nil { // former requests
		return startReport{}, err
	}
	p := &phase{begin: time.Now()}
	if err := s.managers.Start(ctx); err != nil {
		return startReport{}, err
	}
	profiled := s.managers.BeginProfiles(ctx, fmt.Sprintf("start-%d", s.samples+1), s.Profile)
	quiet, err := s.awaitQuiet(ctx, p, int(float64(s.own())*(1-s.dead)))
	if err := errors.Join(err, profiled()); err != nil {
		return startReport{}, err
	}
	r := newStartReport(p, func(r audit.Request) string { return s.managers.NameOf(r.User) })
	r.QuietSeconds = results.Seconds(quiet)
	return r, s.sampleManagers(ctx, r.Managers)
}

// sampleManagers adds the resources of the managers: first their memory, then their state after a garbage collection.
func (s *scale) sampleManagers(ctx context.Context, into map[string]*managerReport) error {
	s.samples++
	used, err := s.managers.Usage()
	if err != nil {
		return err
	}
	for _, name := range managers.Names {
		r := into[name]
		r.MemoryMiB, r.PeakMiB = results.Mebibytes(used[name].Memory), results.Mebibytes(used[name].PeakMemory)
		r.CPUSeconds = results.Seconds(used[name].CPU)
		runtime, err := s.managers.Runtime(ctx, name, fmt.Sprintf("heap-%s-%d.pprof", name, s.samples))
		if err != nil {
			return err
		}
		r.HeapMiB, r.StacksMiB, r.Goroutines, r.Files = runtime.HeapMiB, runtime.StacksMiB, runtime.Goroutines, runtime.Files
	}
	return nil
}

// idleTime measures the managers while no object changes.
func (s *scale) idleTime(ctx context.Context) (idleReport, error) {
	p, profiled := &phase{begin: time.Now()}, s.managers.BeginProfiles(ctx, "idle", s.Profile)
	before, err := s.managers.Usage()
	if err != nil {
		return idleReport{}, err
	}
	select {
	case <-time.After(s.Idle):
	case <-ctx.Done():
		return idleReport{}, context.Cause(ctx)
	}
	after, err := s.managers.Usage()
	if err := errors.Join(err, profiled(), s.collect(p)); err != nil {
		return idleReport{}, err
	}
	r := idleReport{
		Seconds: results.Seconds(s.Idle), CPUSeconds: map[string]float64{}, Hub: p.hub.Unrest().Count(),
		SiteRequests: len(p.sites.Where(noWatch).Unrest()),
	}
	for _, name := range managers.Names {
		r.CPUSeconds[name] = results.Seconds(after[name].CPU - before[name].CPU)
	}
	return r, nil
}
