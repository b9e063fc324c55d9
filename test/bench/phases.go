package main

import (
	"context"
	"fmt"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// The phases in the life of a cluster, in the order in which they are played.
const (
	installation   = "installation"
	idleTime       = "idle time"
	upgraded       = "upgrade to the next patch"
	workerAdded    = "worker added"
	workerRemoved  = "worker removed"
	masterExchange = "master replaced"
	deletion       = "deletion"
)

var phases = []string{installation, idleTime, upgraded, workerAdded, workerRemoved, masterExchange, deletion}

const (
	// silence is how long no manager may ask for anything before a phase is over: what belongs to it may be held back for some seconds.
	silence = 5 * time.Second
	// patience is after how long it is over anyway.
	patience = time.Minute
)

// phase plays a phase of a cluster's life, alone on its hub, and counts what our managers ask for from its beginning
// until they are silent. act returns when it is done.
func (b *bench) phase(ctx context.Context, r *report, name string, act func(context.Context) (*lab.Cluster, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, b.options.timeout, fmt.Errorf("not within %s", b.options.timeout))
	defer cancel()
	begin := time.Now()
	cluster, err := act(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	done := time.Now()
	silent, err := b.awaitSilence(ctx, done)
	if err != nil {
		return err
	}
	run := phaseRun{
		Cluster: cluster.Key().String(), Machines: len(cluster.Hosts), Seconds: seconds(done.Sub(begin)),
		Managers: map[string]requestCount{},
	}
	for _, manager := range managers {
		all, err := b.asked(manager)
		if err != nil {
			return err
		}
		run.Managers[manager] = count(all, begin, silent)
	}
	asked, err := cluster.Server().Requests(env.WorkloadUserAgent)
	if err != nil {
		return err
	}
	run.Site = count(asked, begin, silent)
	r.addRun(name, run)
	return nil
}

// of plays a phase of a cluster that is there.
func of(cluster *lab.Cluster, act func(context.Context, *lab.Cluster) error) func(context.Context) (*lab.Cluster, error) {
	return func(ctx context.Context) (*lab.Cluster, error) { return cluster, act(ctx, cluster) }
}

// leaveAlone is for the idle time.
func (b *bench) leaveAlone(ctx context.Context, _ *lab.Cluster) error {
	select {
	case <-time.After(b.options.idle):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// awaitSilence returns when the managers have been silent for a while, and since when they are.
func (b *bench) awaitSilence(ctx context.Context, since time.Time) (time.Time, error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		last := since
		for _, name := range managers {
			requests, err := b.asked(name)
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
