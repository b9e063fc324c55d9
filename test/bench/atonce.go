package main

import (
	"context"
	"errors"
	"path/filepath"

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
	measured, unexplained := b.seen.measured()
	r.addReactions(measured, unexplained, func(into *reactionReport) *statistics { return &into.Many })
	return nil
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
	if err := errors.Join(b.installMany(ctx), stop()); err != nil {
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
	return nil
}

func (b *bench) installMany(ctx context.Context) error {
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
	group, ctx := errgroup.WithContext(ctx)
	for i := range b.options.clusters {
		mutations := b.place(i)
		mutations.ExtraHosts, mutations.HoldAPI, mutations.LightAPI = extra, true, true
		group.Go(func() error {
			_, err := b.install(ctx, b.options.sample, mutations, meanwhile)
			return err
		})
	}
	return group.Wait()
}
