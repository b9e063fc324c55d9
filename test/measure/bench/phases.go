package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/managers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

// The phases in the life of a cluster, in their order.
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
	// silence is the time without requests after which a phase ends. The managers may defer the write of a status.
	silence = reconcile.DeferralPeriod + 2*time.Second
	// patience is the longest time until the end of a phase.
	patience = time.Minute
)

// phase plays a phase of the only cluster on the hub, and counts the requests of our managers from its begin until they
// are silent. act returns when the phase is complete.
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
		Cluster: cluster.Key().String(), Machines: len(cluster.Hosts), Seconds: results.Seconds(done.Sub(begin)),
		Managers: map[string]requestCount{},
	}
	for _, manager := range managers.Names {
		all, err := b.requestsOf(manager)
		if err != nil {
			return err
		}
		run.Managers[manager] = count(all, begin, silent)
	}
	sites, err := cluster.Server().Requests(env.WorkloadUserAgent)
	if err != nil {
		return err
	}
	run.Site = count(sites, begin, silent)
	r.addRun(name, run)
	return nil
}

// of plays a phase of an existing cluster.
func of(cluster *lab.Cluster, act func(context.Context, *lab.Cluster) error) func(context.Context) (*lab.Cluster, error) {
	return func(ctx context.Context) (*lab.Cluster, error) { return cluster, act(ctx, cluster) }
}

// leaveAlone waits for the idle time.
func (b *bench) leaveAlone(ctx context.Context, _ *lab.Cluster) error {
	select {
	case <-time.After(b.options.Idle):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// awaitSilence waits until the managers are silent, and returns the end of the silence.
func (b *bench) awaitSilence(ctx context.Context, since time.Time) (time.Time, error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		last := since
		for _, name := range managers.Names {
			requests, err := b.requestsOf(name)
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
