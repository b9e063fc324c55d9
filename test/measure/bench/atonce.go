package bench

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/managers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

func (b *bench) many(ctx context.Context, r *report) error {
	if err := b.putInstalled(ctx); err != nil {
		return err
	}
	finish := b.managers.BeginProfiles(ctx, partMany, b.options.Profile)
	if err := errors.Join(b.allAtOnce(ctx, r), finish()); err != nil {
		return err
	}
	if _, err := b.awaitSilence(ctx, time.Now()); err != nil { // an act may follow
		return err
	}
	measured, without := b.seen.measured()
	r.addReactions(partMany, b.options.expected(), measured, without)
	return nil
}

// expected returns the hand-overs that must be seen with the clusters at once.
func (o options) expected() []string {
	if o.Sample == sample {
		return slices.Concat(dayOneHandOvers, lateHandOvers)
	}
	return dayOneHandOvers
}

// allAtOnce installs the clusters at once. HA clusters get a late worker.
func (b *bench) allAtOnce(ctx context.Context, r *report) error {
	b.sayf("%d clusters (%s) at once, each stage of a host takes %s", b.options.Clusters, b.options.Sample, b.options.delay)
	stop, err := b.measureReferences(ctx)
	if err != nil {
		return err
	}
	lookups := len(b.lab.Registry.Lookups())
	before, err := b.sample()
	if err != nil {
		return errors.Join(err, stop())
	}
	clusters, err := b.installMany(ctx)
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	after, err := b.sample()
	if err != nil {
		return err
	}
	r.SecondsToAvailable.Many = results.Seconds(after.at.Sub(before.at))
	r.Machine.BusyPercent.Many = busyPercent(before.processors, after.processors)
	r.Registry.ManyByVersion = len(b.lab.Registry.Lookups()) - lookups
	for _, name := range managers.Names {
		r.manager(name).Many = cost(before.managers[name], after.managers[name])
	}
	return b.countMany(r, clusters, before.at, after.at)
}

// countMany counts the requests for the clusters at once. The requests to the hub are counted together, because not all
// of them show their cluster.
func (b *bench) countMany(r *report, clusters []*lab.Cluster, begin, end time.Time) error {
	r.AtOnce.Machines = len(clusters[0].Hosts)
	for _, name := range managers.Names {
		all, err := b.requestsOf(name)
		if err != nil {
			return err
		}
		r.AtOnce.Hub += count(all, begin, end).Total
	}
	for _, cluster := range clusters {
		sites, err := cluster.Server().Requests(env.WorkloadUserAgent)
		if err != nil {
			return err
		}
		r.AtOnce.Sites = append(r.AtOnce.Sites, count(sites, begin, end).Total)
	}
	slices.Sort(r.AtOnce.Sites)
	return nil
}

func (b *bench) installMany(ctx context.Context) ([]*lab.Cluster, error) {
	late, extra := b.awaitInstalling, 0
	if b.options.Sample == sample {
		late, extra = b.prepareLateWorker, 1
	}
	meanwhile := func(ctx context.Context, cluster *lab.Cluster) error {
		if err := late(ctx, cluster); err != nil {
			return err
		}
		cluster.ReleaseAPI()
		return nil
	}
	clusters := make([]*lab.Cluster, b.options.Clusters)
	group, ctx := errgroup.WithContext(ctx)
	for i := range b.options.Clusters {
		mutations := b.place(i)
		mutations.ExtraHosts, mutations.HoldAPI, mutations.LightAPI = extra, true, true
		group.Go(func() (err error) {
			clusters[i], err = b.install(ctx, b.options.Sample, mutations, meanwhile)
			return err
		})
	}
	return clusters, group.Wait()
}
