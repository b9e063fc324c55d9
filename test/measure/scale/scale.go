package scale

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/managers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/seed"
)

// scale is a run.
type scale struct {
	options

	out        io.Writer
	report     *report
	lab        *lab.Lab
	managers   *managers.Managers
	seeder     *seed.Seeder
	hub, sites *audit.Follower
	samples    int // number of samples of the managers
}

// measure does the whole run.
func measure(ctx context.Context, o options, out io.Writer) (*report, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	own := managers.Options()
	s := &scale{options: o, out: out, report: &report{
		Clusters: o.Clusters, Sample: o.Sample, Shards: o.shards, Dead: o.dead, Foreign: o.foreign, HTTP1: o.http1,
		MemoryLimitMiB: map[string]float64{},
	}}
	begin := time.Now()
	var err error
	if s.lab, err = lab.New(ctx, lab.Options{
		Dir: o.Dir, Out: out, LeaveSignals: true, NoUpgrades: true, Bootstrap: own,
		ControlPlane: own,
	}); err != nil {
		return nil, err
	}
	defer s.lab.Stop()
	if s.managers, err = managers.Of(ctx, s.lab); err != nil {
		return nil, err
	}
	s.took("laboratory", begin)
	if err := s.all(ctx); err != nil {
		return nil, fmt.Errorf("%w\nlogs: %s", err, s.lab.Dir())
	}
	return s.report, nil
}

// took records the duration of a step.
func (s *scale) took(name string, begin time.Time) {
	s.report.Steps = append(s.report.Steps, step{name, results.Seconds(time.Since(begin))})
	_, _ = fmt.Fprintf(s.out, "%s: %s\n", name, time.Since(begin).Round(100*time.Millisecond)) // a lost line of progress is no error
}

func (s *scale) all(ctx context.Context) error {
	begin := time.Now()
	if err := s.prepare(ctx); err != nil {
		return err
	}
	s.took("one installed cluster, whose API server serves all", begin)
	begin = time.Now()
	if err := s.seeder.Clusters(ctx, s.Clusters, s.filterOf); err != nil {
		return err
	}
	s.took(fmt.Sprintf("%d clusters, %d objects each", s.Clusters, s.seeder.Objects()), begin)
	begin = time.Now()
	if err := s.seeder.Foreign(ctx, s.foreign); err != nil {
		return err
	}
	s.took("foreign objects", begin)
	s.configure()
	return s.phases(ctx)
}

// prepare installs the cluster that is cloned, and freezes the laboratory when the managers are quiet.
func (s *scale) prepare(ctx context.Context) error {
	s.hub = audit.Follow(s.lab.Env.AuditLog())
	cluster, err := seed.Install(ctx, s.lab, s.Sample)
	if err != nil {
		return err
	}
	if _, err := s.awaitQuiet(ctx, &phase{begin: time.Now()}, 0); err != nil {
		return err
	}
	if err := s.lab.Freeze(ctx); err != nil {
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

// filterOf returns the shard of a cluster. The measured managers have the first one.
func (s *scale) filterOf(index int) string {
	if s.shards < 2 {
		return ""
	}
	return fmt.Sprintf("shard-%d", index%s.shards)
}

// configure sets the memory limits and the shard of the stopped managers.
func (s *scale) configure() {
	for _, name := range managers.Names {
		p := s.lab.Env.Manager(name)
		limit := s.memoryFlag(name)
		s.report.MemoryLimitMiB[name] = limit
		p.Env = append(p.Env, fmt.Sprintf("GOMEMLIMIT=%d", int64(limit*(1<<20))))
		if filter := s.filterOf(0); filter != "" {
			p.Args = append(p.Args, "--watch-filter="+filter)
		}
	}
}

// phases runs the measured phases.
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
	s.managers.Stop()
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
