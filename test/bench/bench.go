package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/diagnostics"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

const (
	// sample is what is installed one after the other, workers how many of its Machines are workers.
	sample  = "ha"
	workers = 2
	// heartbeat is longer than any run: the installed clusters share a Node, and would all tell at once what those of real ones tell over minutes.
	heartbeat = time.Hour

	// singleNode is the sample for which there is a target of clusters in an hour.
	singleNode = "sno"

	// partOne and partMany are the parts of a run, and the folders of their logs.
	partOne, partMany = "one", "many"

	controlPlaneKind = "OpenshiftAssistedControlPlane"
)

// bench is a laboratory under observation.
type bench struct {
	options options
	out     io.Writer
	lab     *lab.Lab
	seen    *observer
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
		Dir: dir, Out: out, StageDelay: delay, LeaveSignals: true, Bootstrap: own, ControlPlane: own, Heartbeat: heartbeat, Namespaces: o.simulated(), NoUpgrades: part == partMany,
	})
	if err != nil {
		return err
	}
	defer l.Stop()
	ctx, end := context.WithCancel(ctx)
	defer end()
	b := &bench{options: o, out: out, lab: l}
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
	measured, unexplained := b.seen.measured()
	r.addReactions(measured, unexplained, func(into *reactionReport) *statistics { return &into.One })
	return nil
}

// one installs a single cluster and counts what that costs.
func (b *bench) one(ctx context.Context, r *report) error {
	b.sayf("one cluster, release by version")
	lookups := len(b.lab.Registry.Lookups())
	before, err := b.look()
	if err != nil {
		return err
	}
	cluster, err := b.install(ctx, sample, lab.Mutations{Namespace: "bench-single"}, nil)
	if err != nil {
		return err
	}
	after, err := b.look()
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
	if err := b.countRequests(ctx, r, before.at, after.at); err != nil {
		return err
	}
	return cluster.Delete(ctx)
}

// oneByOne installs clusters whose release is given by digest, with a late worker, one after the other; each is upgraded, and a worker and a master are deleted of it.
func (b *bench) oneByOne(ctx context.Context, r *report) error {
	lookups := len(b.lab.Registry.Lookups())
	for i := range b.options.samples {
		b.sayf("one cluster, release by digest, with a late worker (%d of %d)", i+1, b.options.samples)
		stop, err := b.measureReferences(ctx)
		if err != nil {
			return err
		}
		mutations := lab.Mutations{Namespace: fmt.Sprintf("bench-sample-%d", i), ExtraHosts: 1, HoldAPI: true, Edit: b.byDigest, EtcdMembers: true}
		cluster, err := b.install(ctx, sample, mutations, b.addLateWorker)
		for _, then := range []func(context.Context, *lab.Cluster) error{b.upgrade, b.takeHosts} {
			if err == nil {
				err = then(ctx, cluster)
			}
		}
		if err := errors.Join(err, stop()); err != nil {
			return err
		}
		if err := cluster.Delete(ctx); err != nil {
			return err
		}
	}
	r.Registry.ByDigest = len(b.lab.Registry.Lookups()) - lookups
	return nil
}

// install applies a sample and waits until the cluster is available, with a Machine for each of its hosts. meanwhile, when given, is called as soon as it is applied.
func (b *bench) install(
	ctx context.Context, sample string, mutations lab.Mutations, meanwhile func(context.Context, *lab.Cluster) error,
) (*lab.Cluster, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.options.timeout, fmt.Errorf("not within %s", b.options.timeout))
	defer cancel()
	cluster, err := b.lab.ApplySample(ctx, sample, mutations)
	if err != nil {
		return nil, err
	}
	if meanwhile != nil {
		if err := meanwhile(ctx, cluster); err != nil {
			return nil, b.explain(cluster, err)
		}
	}
	err = b.seen.await(ctx, "installation of "+cluster.Key().String(), func() bool {
		_, available := b.seen.since(fact{clusterAvailable, cluster.Key().String()})
		return available && len(b.seen.holding(machineRunning, ofCluster(cluster.Key()))) == len(cluster.Hosts)
	})
	return cluster, b.explain(cluster, err)
}

// explain adds to an error what the cluster waits for.
func (b *bench) explain(cluster *lab.Cluster, err error) error {
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	state, problem := cluster.State(ctx)
	if problem != nil {
		return errors.Join(err, problem)
	}
	return fmt.Errorf("%w\n%s", err, strings.Join(state.Waiting(), "\n"))
}

// addLateWorker adds a worker to a cluster that is being installed, and lets the installation end when the worker waits for that.
func (b *bench) addLateWorker(ctx context.Context, cluster *lab.Cluster) error {
	if err := b.prepareLateWorker(ctx, cluster); err != nil {
		return err
	}
	cluster.ReleaseAPI()
	return nil
}

// prepareLateWorker adds a worker once the cluster is being installed, and waits until its host is discovered. At that time all Agents of the
// other hosts are bound.
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
