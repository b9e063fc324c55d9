package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/managers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

const (
	// sample is the sample of the single clusters, and workers the number of its workers.
	sample  = "ha"
	workers = 2
	// heartbeat is longer than any run. The installed clusters share a Node, whose heartbeat would reach all of them at
	// once; real clusters have them at different times.
	heartbeat = time.Hour

	// singleNode is the sample for which there is a target of clusters in an hour.
	singleNode = "sno"

	// partOne and partMany are the parts of a run and the folders of their logs.
	partOne, partMany = "one", "many"

	controlPlaneKind = "OpenshiftAssistedControlPlane"
)

// partNames are the names of the parts in results.
var partNames = map[string]string{partOne: "one cluster", partMany: "at once"}

// bench is a measured laboratory.
type bench struct {
	options  options
	out      io.Writer
	lab      *lab.Lab
	seen     *observer
	managers *managers.Managers
	floors   floors
	// hub is the audit log of the management cluster, and requests are the requests of each manager so far.
	hub      *audit.Follower
	requests map[string]audit.Requests
}

// measure runs all parts: single clusters in one laboratory, clusters at once in another.
func measure(ctx context.Context, o options, out io.Writer) (*report, error) {
	r := newReport(o)
	if o.samples > 0 {
		if err := within(ctx, o, partOne, 0, out, func(b *bench) error { return b.single(ctx, r) }); err != nil {
			return nil, err
		}
	}
	if o.Clusters == 0 {
		return r, nil
	}
	return r, within(ctx, o, partMany, o.delay, out, func(b *bench) error { return b.many(ctx, r) })
}

// within starts a laboratory, observes it while act runs, and stops it.
func within(ctx context.Context, o options, part string, delay time.Duration, out io.Writer, act func(*bench) error) error {
	dir := o.Dir
	if dir != "" {
		dir = filepath.Join(dir, part)
	}
	own := managers.Options()
	l, err := lab.New(ctx, lab.Options{
		Dir: dir, Out: out, StageDelay: delay, LeaveSignals: true, Bootstrap: own, ControlPlane: own, Heartbeat: heartbeat,
		Namespaces: o.simulated(), NoUpgrades: part == partMany,
	})
	if err != nil {
		return err
	}
	defer l.Stop()
	ctx, end := context.WithCancel(ctx)
	defer end()
	b := &bench{options: o, out: out, lab: l, hub: audit.Follow(l.Env.AuditLog()), requests: map[string]audit.Requests{}}
	if b.managers, err = managers.Of(ctx, l); err != nil {
		return err
	}
	if b.seen, err = observe(ctx, l.Env.Config(), l.Env.Scheme(), o.observed()); err != nil {
		return err
	}
	if err := act(b); err != nil {
		return fmt.Errorf("%w\nlogs: %s", err, l.Dir())
	}
	return nil
}

func (b *bench) single(ctx context.Context, r *report) error {
	if err := b.one(ctx, r); err != nil {
		return err
	}
	if err := b.oneByOne(ctx, r); err != nil {
		return err
	}
	measured, without := b.seen.measured()
	r.addReactions(partOne, handOvers, measured, without)
	return nil
}

// one installs a single cluster, and measures the installation, an idle time and the deletion.
func (b *bench) one(ctx context.Context, r *report) error {
	cluster, err := b.oneInstallation(ctx, r)
	if err != nil {
		return err
	}
	b.sayf("idle for %s", b.options.Idle)
	return errors.Join(b.phase(ctx, r, idleTime, of(cluster, b.leaveAlone)), b.phase(ctx, r, deletion, of(cluster, deleteCluster)))
}

// oneInstallation installs a single cluster, and measures the managers together with their floors.
func (b *bench) oneInstallation(ctx context.Context, r *report) (cluster *lab.Cluster, err error) {
	b.sayf("one cluster, release by version")
	if err := b.startFloors(ctx); err != nil {
		return nil, err
	}
	defer b.stopFloors()
	lookups := len(b.lab.Registry.Lookups())
	before, err := b.sample()
	if err != nil {
		return nil, err
	}
	var after sampled
	err = b.phase(ctx, r, installation, func(ctx context.Context) (_ *lab.Cluster, err error) {
		if cluster, err = b.install(ctx, sample, lab.Mutations{Namespace: "bench-single", Audit: true}, nil); err != nil {
			return nil, err
		}
		after, err = b.sample()
		return cluster, err
	})
	if err != nil {
		return nil, err
	}
	r.SecondsToAvailable.One = results.Seconds(after.at.Sub(before.at))
	r.Machine.BusyPercent.One = busyPercent(before.processors, after.processors)
	r.Registry.ByVersion = len(b.lab.Registry.Lookups()) - lookups
	for _, name := range managers.Names {
		r.manager(name).StartCPUSeconds = results.Seconds(before.managers[name].CPU)
		r.manager(name).One = cost(before.managers[name], after.managers[name])
		r.manager(name).Floor = cost(before.floors[name], after.floors[name])
	}
	return cluster, nil
}

func deleteCluster(ctx context.Context, cluster *lab.Cluster) error { return cluster.Delete(ctx) }

// oneByOne plays the lives of clusters whose release is given by digest, one after the other.
func (b *bench) oneByOne(ctx context.Context, r *report) error {
	lookups := len(b.lab.Registry.Lookups())
	for i := range b.options.samples {
		b.sayf("one cluster, release by digest, with a late worker, and its life (%d of %d)", i+1, b.options.samples)
		stop, err := b.measureReferences(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(b.live(ctx, r, fmt.Sprintf("bench-sample-%d", i)), stop()); err != nil {
			return err
		}
	}
	r.Registry.ByDigest = len(b.lab.Registry.Lookups()) - lookups
	return nil
}

// live plays the whole life of a cluster.
func (b *bench) live(ctx context.Context, r *report, namespace string) error {
	mutations := lab.Mutations{Namespace: namespace, ExtraHosts: 2, HoldAPI: true, Audit: true, Edit: b.byDigest, EtcdMembers: true}
	var cluster *lab.Cluster
	err := b.phase(ctx, r, installation, func(ctx context.Context) (_ *lab.Cluster, err error) {
		cluster, err = b.install(ctx, sample, mutations, b.addLateWorker)
		return cluster, err
	})
	if err != nil {
		return err
	}
	for _, then := range []struct {
		name string
		act  func(context.Context, *lab.Cluster) error
	}{
		{upgraded, b.upgrade},
		{workerAdded, b.addWorker},
		{workerRemoved, b.removeWorker},
		{masterExchange, b.replaceMaster},
		{deletion, deleteCluster},
	} {
		b.sayf("  %s", then.name)
		if err := b.phase(ctx, r, then.name, of(cluster, then.act)); err != nil {
			return err
		}
	}
	return nil
}

// install applies a sample and waits until the cluster is available with all of its Machines. meanwhile, unless nil, is
// called after the apply. It adds a late worker if the cluster has more hosts than the sample needs.
func (b *bench) install(
	ctx context.Context, sample string, mutations lab.Mutations, meanwhile func(context.Context, *lab.Cluster) error,
) (*lab.Cluster, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.options.timeout, fmt.Errorf("not within %s", b.options.timeout))
	defer cancel()
	cluster, err := b.lab.ApplySample(ctx, sample, mutations)
	if err != nil {
		return nil, err
	}
	wanted := len(cluster.Hosts) - mutations.ExtraHosts
	if meanwhile != nil && mutations.ExtraHosts > 0 {
		wanted++ // the late worker
	}
	if meanwhile != nil {
		if err := meanwhile(ctx, cluster); err != nil {
			return nil, cluster.Explain(err)
		}
	}
	err = b.seen.await(ctx, "installation of "+cluster.Key().String(), func() bool {
		_, available := b.seen.since(fact{clusterAvailable, cluster.Key().String()})
		return available && len(b.seen.holding(machineRunning, ofCluster(cluster.Key()))) == wanted
	})
	return cluster, cluster.Explain(err)
}

// addLateWorker adds a worker during the installation, and unblocks the end of the installation when the worker waits.
func (b *bench) addLateWorker(ctx context.Context, cluster *lab.Cluster) error {
	if err := b.prepareLateWorker(ctx, cluster); err != nil {
		return err
	}
	cluster.ReleaseAPI()
	return nil
}

// prepareLateWorker adds a worker during the installation, when all Agents of the other hosts are bound, and waits until
// its host is discovered.
func (b *bench) prepareLateWorker(ctx context.Context, cluster *lab.Cluster) error {
	if err := b.awaitInstalling(ctx, cluster); err != nil {
		return err
	}
	if err := cluster.Scale(ctx, workers+1); err != nil {
		return err
	}
	return b.seen.await(ctx, "discovery of the late worker of "+cluster.Key().String(), func() bool {
		return len(b.seen.holding(machineDiscovered, ofCluster(cluster.Key()))) == 1
	})
}

func (b *bench) awaitInstalling(ctx context.Context, cluster *lab.Cluster) error {
	return b.seen.await(ctx, "start of the installation of "+cluster.Key().String(), func() bool {
		_, started := b.seen.since(fact{installing, cluster.Key().String()})
		return started
	})
}

// byDigest sets the release image by digest.
func (b *bench) byDigest(object *unstructured.Unstructured) {
	if object.GetKind() != controlPlaneKind {
		return
	}
	version, _, _ := unstructured.NestedString(object.Object, "spec", "distributionVersion")
	image, err := b.lab.Registry.Publish(version)
	if err == nil {
		err = unstructured.SetNestedField(object.Object, image, "spec", "config", "releaseImage")
	}
	if err != nil {
		// The registry is in this process, and all tests apply the sample.
		panic(fmt.Sprintf("cannot set release %s by digest: %v", version, err))
	}
}

// sampled is the use of resources up to a time.
type sampled struct {
	at               time.Time
	managers, floors map[string]process.Usage
	processors       processors
}

func (b *bench) sample() (sampled, error) {
	used, err := b.managers.Usage()
	if err != nil {
		return sampled{}, err
	}
	floors, err := b.floors.usage()
	if err != nil {
		return sampled{}, err
	}
	processors, err := readProcessors()
	return sampled{time.Now(), used, floors, processors}, err
}

func (b *bench) sayf(format string, args ...any) {
	// A lost line of progress is no error.
	_, _ = fmt.Fprintf(b.out, format+"\n", args...)
}
