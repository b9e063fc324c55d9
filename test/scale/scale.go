package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/diagnostics"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/seed"
)

// scale is a run.
type scale struct {
	options

	out         io.Writer
	report      *report
	lab         *lab.Lab
	seeder      *seed.Seeder
	diagnostics *diagnostics.Diagnostics
	hub, sites  *audit.Follower
	looks       int // counts the heap profiles
}

// measure does the whole run.
func measure(ctx context.Context, o options, out io.Writer) (*report, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	own := env.ManagerOptions{ExtraArgs: diagnostics.Args}
	s := &scale{options: o, out: out, report: &report{
		Clusters: o.clusters, Sample: o.sample, Shards: o.shards, Dead: o.dead, Foreign: o.foreign, HTTP1: o.http1,
		MemoryLimitMiB: map[string]float64{},
	}}
	begin := time.Now()
	var err error
	if s.lab, err = lab.New(ctx, lab.Options{
		Dir: o.dir, Out: out, LeaveSignals: true, NoUpgrades: true, Bootstrap: own,
		ControlPlane: own,
	}); err != nil {
		return nil, err
	}
	defer s.lab.Stop()
	s.took("laboratory", begin)
	if err := s.all(ctx); err != nil {
		return nil, fmt.Errorf("%w\nlogs: %s", err, s.lab.Dir())
	}
	return s.report, nil
}

// took notes how long a step took.
func (s *scale) took(name string, begin time.Time) {
	s.report.Steps = append(s.report.Steps, step{name, seconds(time.Since(begin))})
	_, _ = fmt.Fprintf(s.out, "%s: %s\n", name, time.Since(begin).Round(100*time.Millisecond)) // for people: nothing depends on it
}

func (s *scale) all(ctx context.Context) error {
	begin := time.Now()
	if err := s.prepare(ctx); err != nil {
		return err
	}
	s.took("one cluster installed, and what stands behind all", begin)
	begin = time.Now()
	if err := s.seeder.Clusters(ctx, s.clusters, s.filterOf); err != nil {
		return err
	}
	s.took(fmt.Sprintf("%d clusters, %d objects each", s.clusters, s.seeder.Objects()), begin)
	begin = time.Now()
	if err := s.seeder.Foreign(ctx, s.foreign); err != nil {
		return err
	}
	s.took("what is not ours", begin)
	s.configure()
	return s.phases(ctx)
}

// prepare installs the cluster that is cloned, and freezes the laboratory when nothing is left to be done.
func (s *scale) prepare(ctx context.Context) error {
	s.hub = audit.Follow(s.lab.Env.AuditLog())
	cluster, err := seed.Install(ctx, s.lab, s.sample)
	if err != nil {
		return err
	}
	if _, err := s.awaitQuiet(ctx, &phase{begin: time.Now()}, 0); err != nil {
		return err
	}
	if err := s.lab.Freeze(ctx); err != nil {
		return err
	}
	if s.diagnostics, err = diagnostics.New(ctx, s.lab.Client()); err != nil {
		return err
	}
	if s.http1 {
		cluster.Server().Args = append(cluster.Server().Args, "--disable-http2-serving")
	}
	if s.seeder, err = seed.New(ctx, s.lab, cluster, s.dead); err != nil {
		return err
	}
	s.sites = audit.Follow(s.seeder.AuditLog)
	return nil
}

// filterOf is the shard of a cluster; the managers that are measured have the first.
func (s *scale) filterOf(index int) string {
	if s.shards < 2 {
		return ""
	}
	return fmt.Sprintf("shard-%d", index%s.shards)
}

// configure gives the managers, which do not run, the limits of their memory, as their containers would have them, and their shard.
func (s *scale) configure() {
	for _, name := range managers {
		p := s.lab.Env.Manager(name)
		limit := s.memoryFlag(name)
		s.report.MemoryLimitMiB[name] = limit
		p.Env = append(p.Env, fmt.Sprintf("GOMEMLIMIT=%d", int64(limit*(1<<20))))
		if filter := s.filterOf(0); filter != "" {
			p.Args = append(p.Args, "--watch-filter="+filter)
		}
	}
}

// phases are what is measured.
func (s *scale) phases(ctx context.Context) error {
	var err error
	begin := time.Now()
	if s.report.Start, err = s.startUp(ctx); err != nil {
		return err
	}
	s.took("start", begin)
	begin = time.Now()
	if s.report.Idle, err = s.idleTime(ctx); err != nil {
		return err
	}
	s.took("idle", begin)
	begin = time.Now()
	s.stopAll()
	if s.report.Restart, err = s.startUp(ctx); err != nil {
		return err
	}
	s.took("restart", begin)
	if s.reactions == 0 {
		return nil
	}
	begin = time.Now()
	if s.report.Reactions, err = s.react(ctx); err != nil {
		return err
	}
	s.took("reactions", begin)
	return nil
}
