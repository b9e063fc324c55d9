// Command dashboard creates the picture of the Grafana dashboard in docs/pictures. It installs clusters in the
// laboratory, one of which fails. A real Prometheus scrapes the managers of this repository and a real
// kube-state-metrics with the configuration of this repository. Then test/tools/dashboard sends the queries of the
// dashboard to this Prometheus and draws the results.
//
//	bin/dashboard [-delay 1s] [-out docs/pictures/dashboard.svg]
//
// The data of Prometheus stay in the folder of the laboratory.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/program"
)

// timeout is how long the clusters may take together.
const timeout = 10 * time.Minute

type options struct {
	delay time.Duration
	out   string
	dir   string
}

func main() {
	o := options{}
	flag.DurationVar(&o.delay, "delay", time.Second, "how long each stage of hosts and clusters takes at least")
	flag.StringVar(&o.out, "out", "docs/pictures/dashboard.svg", "file of the picture")
	flag.StringVar(&o.dir, "dir", "", "folder for logs and the data of Prometheus (default: a new one below _artifacts)")
	flag.Parse()
	program.Main(func(ctx context.Context) error { return run(ctx, o) })
}

func run(ctx context.Context, o options) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not within %s", timeout))
	defer cancel()
	l, err := lab.New(ctx, lab.Options{Dir: o.dir, Out: os.Stdout, StageDelay: o.delay, LeaveSignals: true})
	if err != nil {
		return err
	}
	defer l.Stop()
	prometheus, err := observe(ctx, l)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := install(ctx, l); err != nil {
		return fmt.Errorf("%w\nlogs: %s", err, l.Dir())
	}
	return draw(ctx, l, prometheus, begin, o.out)
}

// install applies clusters one after another. It returns when each has a result: the first are installed, one has
// failed, and the last is being installed.
func install(ctx context.Context, l *lab.Lab) error {
	group, waiting := errgroup.WithContext(ctx)
	for i, site := range sites {
		if err := sleep(waiting, site.after); err != nil {
			return err
		}
		name := "site-" + strconv.Itoa(i+1)
		cluster, err := l.ApplySample(waiting, site.sample, lab.Mutations{Namespace: name, ClusterName: name})
		if err != nil {
			return err
		}
		if site.fails {
			l.Service.FailPreparation(cluster.Key(), "the disk of a host is too slow")
		}
		group.Go(func() error { return cluster.Wait(waiting, site.until, site.done) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return sleep(ctx, 2*scrapeInterval) // so that what came last was scraped
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// draw runs the program that queries Prometheus and draws the picture.
func draw(ctx context.Context, l *lab.Lab, prometheus string, begin time.Time, out string) error {
	root := l.Env.Components().Root()
	out, err := filepath.Abs(out)
	if err != nil {
		return fmt.Errorf("cannot write the picture: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "run", ".", "-prometheus="+prometheus, "-from="+begin.Format(time.RFC3339),
		"-to="+time.Now().Format(time.RFC3339),
		"-scrape-interval="+scrapeInterval.String(), "-dashboard="+filepath.Join(root, "config", "monitoring", "grafana-dashboard.json"),
		"-out="+out)
	cmd.Dir = filepath.Join(root, "test", "tools", "dashboard")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot draw the dashboard: %w", err)
	}
	return nil
}
