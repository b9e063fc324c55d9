package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/diagnostics"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

const (
	// sample is what is installed one after the other, workers how many of its Machines are workers.
	sample  = "ha"
	workers = 2
	// heartbeat is longer than any run: the installed clusters share a Node, and would all tell at once what those of
	// real ones tell over minutes.
	heartbeat = time.Hour

	// singleNode is the sample for which there is a target of clusters in an hour.
	singleNode = "sno"

	// partOne and partMany are the parts of a run, and the folders of their logs.
	partOne, partMany = "one", "many"

	controlPlaneKind = "OpenshiftAssistedControlPlane"
)

// partNames are for people.
var partNames = map[string]string{partOne: "one cluster", partMany: "at once"}

// bench is a laboratory under observation.
type bench struct {
	options options
	out     io.Writer
	lab     *lab.Lab
	seen    *observer
	// hub is the audit log of the management cluster, requests are those of each manager in it so far.
	hub      *audit.Follower
	requests map[string]audit.Requests
}

// measure runs all parts: single clusters in one laboratory, many at once in another.
func measure(ctx context.Context, o options, out io.Writer) (*report, error) {
	r := newReport(o)
	if o.samples > 0 {
		if err := within(ctx, o, partOne, 0, out, func(b *bench) error { return b.single(ctx, r) }); err != nil {
			return nil, err
		}
	}
	if o.clusters == 0 {
		return r, nil
	}
	return r, within(ctx, o, partMany, o.delay, out, func(b *bench) error { return b.many(ctx, r) })
}

// within starts a laboratory, observes it while act runs, and stops it.
func within(ctx context.Context, o options, part string, delay time.Duration, out io.Writer, act func(*bench) error) error {
	dir := o.dir
	if dir != "" {
		dir = filepath.Join(dir, part)
	}
	own := env.ManagerOptions{ExtraArgs: diagnostics.Args}
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

// one installs a single cluster and counts what that costs, and what it costs afterwards to do nothing.
func (b *bench) one(ctx context.Context, r *report) error {
	b.sayf("one cluster, release by version")
	lookups := len(b.lab.Registry.Lookups())
	before, err := b.look()
	if err != nil {
		return err
	}
	var cluster *lab.Cluster
	var after look
	err = b.phase(ctx, r, installation, func(ctx context.Context) (_ *lab.Cluster, err error) {
		if cluster, err = b.install(ctx, sample, lab.Mutations{Namespace: "bench-single", Audit: true}, nil); err != nil {
			return nil, err
		}
		after, err = b.look()
		return cluster, err
	})
	if err != nil {
		return err
	}
	r.SecondsToAvailable.One = seconds(after.at.Sub(before.at))
	r.Machine.BusyPercent.One = busyPercent(before.processors, after.processors)
	r.Registry.ByVersion = len(b.lab.Registry.Lookups()) - lookups
	for _, name := range managers {
		r.manager(name).StartCPUSeconds = seconds(before.managers[name].CPU)
		r.manager(name).One = cost(before.managers[name], after.managers[name])
	}
	b.sayf("idle for %s", b.options.idle)
	return errors.Join(b.phase(ctx, r, idleTime, of(cluster, b.leaveAlone)), b.phase(ctx, r, deletion, of(cluster, deleteCluster)))
}

func deleteCluster(ctx context.Context, cluster *lab.Cluster) error { return cluster.Delete(ctx) }

// oneByOne installs clusters whose release is given by digest, with a late worker, one after the other. Each is
// upgraded, gets and loses a worker, has a master replaced, and is deleted.
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

// install applies a sample and waits until the cluster is available, with all of its Machines. meanwhile, when given,
// is called as soon as it is applied, and adds a late worker where there are more hosts than the sample needs.
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

// addLateWorker adds a worker to a cluster that is being installed, and lets the installation end when the worker waits for that.
func (b *bench) addLateWorker(ctx context.Context, cluster *lab.Cluster) error {
	if err := b.prepareLateWorker(ctx, cluster); err != nil {
		return err
	}
	cluster.ReleaseAPI()
	return nil
}

// prepareLateWorker adds a worker once the cluster is being installed, and waits until its host is discovered. At that
// time all Agents of the other hosts are bound.
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

// byDigest gives the release by digest in place of its version's tag.
func (b *bench) byDigest(object *unstructured.Unstructured) {
	if object.GetKind() != controlPlaneKind {
		return
	}
	version, _, _ := unstructured.NestedString(object.Object, "spec", "version")
	image, err := b.lab.Registry.Publish(version)
	if err == nil {
		err = unstructured.SetNestedField(object.Object, image, "spec", "config", "releaseImage")
	}
	if err != nil {
		// The registry is in this process and the sample is applied by every test.
		panic(fmt.Sprintf("cannot give release %s by digest: %v", version, err))
	}
}

// look is what has been used up to a point in time.
type look struct {
	at         time.Time
	managers   map[string]process.Usage
	processors processors
}

func (b *bench) look() (look, error) {
	l := look{at: time.Now(), managers: map[string]process.Usage{}}
	var err error
	for _, name := range managers {
		if l.managers[name], err = b.lab.Env.Manager(name).Usage(); err != nil {
			return look{}, err
		}
	}
	l.processors, err = readProcessors()
	return l, err
}

func (b *bench) sayf(format string, args ...any) {
	// Progress for people: nothing depends on it.
	_, _ = fmt.Fprintf(b.out, format+"\n", args...)
}
