package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/diagnostics"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

func (b *bench) many(ctx context.Context, r *report) error {
	if err := b.putInstalled(ctx); err != nil {
		return err
	}
	finish, err := b.profile(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(b.allAtOnce(ctx, r), finish()); err != nil {
		return err
	}
	if _, err := b.awaitSilence(ctx, time.Now()); err != nil { // an act may be on its way
		return err
	}
	measured, without := b.seen.measured()
	r.addReactions(partMany, b.options.expected(), measured, without)
	return nil
}

// expected are the hand-overs that the clusters at once must show.
func (o options) expected() []string {
	if o.sample == sample {
		return slices.Concat(dayOneHandOvers, lateHandOvers)
	}
	return dayOneHandOvers
}

// profile begins to write, beside the logs, what the managers work on; finish waits for the end of that.
func (b *bench) profile(ctx context.Context) (finish func() error, err error) {
	if b.options.profile == 0 {
		return func() error { return nil }, nil
	}
	asking, err := diagnostics.New(ctx, b.lab.Client())
	if err != nil {
		return nil, err
	}
	path := func(name string) string { return filepath.Join(b.lab.Dir(), "cpu-"+name+".pprof") }
	return asking.BeginCPU(ctx, b.options.profile, path, b.lab.Env.Manager(env.ControlPlane), b.lab.Env.Manager(env.Bootstrap)), nil
}

// allAtOnce installs many clusters together, those with workers with a late one each.
func (b *bench) allAtOnce(ctx context.Context, r *report) error {
	b.sayf("%d clusters (%s) at once, each stage of a host takes %s", b.options.clusters, b.options.sample, b.options.delay)
	stop, err := b.measureReferences(ctx)
	if err != nil {
		return err
	}
	lookups := len(b.lab.Registry.Lookups())
	before, err := b.look()
	if err != nil {
		return errors.Join(err, stop())
	}
	clusters, err := b.installMany(ctx)
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	after, err := b.look()
	if err != nil {
		return err
	}
	r.SecondsToAvailable.Many = seconds(after.at.Sub(before.at))
	r.Machine.BusyPercent.Many = busyPercent(before.processors, after.processors)
	r.Registry.ManyByVersion = len(b.lab.Registry.Lookups()) - lookups
	for _, name := range managers {
		r.manager(name).Many = cost(before.managers[name], after.managers[name])
	}
	return b.countMany(r, clusters, before.at, after.at)
}

// countMany counts what the clusters at once have asked for: the hub all together, as not every request tells for which of them it is.
func (b *bench) countMany(r *report, clusters []*lab.Cluster, begin, end time.Time) error {
	r.AtOnce.Machines = len(clusters[0].Hosts)
	for _, name := range managers {
		all, err := b.asked(name)
		if err != nil {
			return err
		}
		r.AtOnce.Hub += count(all, begin, end).Total
	}
	for _, cluster := range clusters {
		asked, err := cluster.Server().Requests(env.WorkloadUserAgent)
		if err != nil {
			return err
		}
		r.AtOnce.Sites = append(r.AtOnce.Sites, count(asked, begin, end).Total)
	}
	slices.Sort(r.AtOnce.Sites)
	return nil
}

func (b *bench) installMany(ctx context.Context) ([]*lab.Cluster, error) {
	late, extra := b.awaitInstalling, 0
	if b.options.sample == sample {
		late, extra = b.prepareLateWorker, 1
	}
	meanwhile := func(ctx context.Context, cluster *lab.Cluster) error {
		if err := late(ctx, cluster); err != nil {
			return err
		}
		cluster.ReleaseAPI()
		return nil
	}
	clusters := make([]*lab.Cluster, b.options.clusters)
	group, ctx := errgroup.WithContext(ctx)
	for i := range b.options.clusters {
		mutations := b.place(i)
		mutations.ExtraHosts, mutations.HoldAPI, mutations.LightAPI = extra, true, true
		group.Go(func() (err error) {
			clusters[i], err = b.install(ctx, b.options.sample, mutations, meanwhile)
			return err
		})
	}
	return clusters, group.Wait()
}
