// Command bench measures what the managers of this repository cost and how long they take to act: reaction times at every hand-over, API
// requests, CPU time, peak memory, registry look-ups. It installs the HA sample in the laboratory (package lab), with hosts and an
// assisted-service that act at once; the managers, Cluster API, CAPM3 and the API server are the real ones.
//
//	go run ./test/bench [-clusters 10] [-installed 1000] [-sample ha] [-delay 0s] [-samples 2] [-profile 60s] [-out _artifacts/bench.json]
//
// It runs, one after the other:
//
//   - one cluster (3 control-plane hosts, 2 workers) with the release given by version: requests, then an idle minute, CPU and memory;
//   - as many single clusters as -samples says, the release given by digest, each with a third worker that is added while the cluster
//     installs and so has to wait until it adds hosts; each is then upgraded to its next patch, and loses a worker and a master;
//   - in a second laboratory, as many clusters as -clusters says at once, the release given by version, HA ones with such a late worker too. Their own
//     API servers are light ones (package lightapi): kube-apiservers for all of them would take what no real hub has to give.
//
// With -installed, installed clusters stand beside those at once (package seed). Our managers connect to them and reconcile them; all other controllers look at
// the namespace of those at once alone, and the clusters at once have one namespace together.
//
// The results are printed beside the targets and written as JSON. The exit status is 1 when the clusters at once missed theirs: of a hundred reactions the slowest
// takes at most twice what a single write takes until it is seen, and of single-node clusters (-sample=sno) 5,000 in an hour take both managers no more than half
// of two processors. Other targets that are missed are results, not failures. With -profile, what the managers work on lies beside the logs.
//
// A reaction time is what one observer of the API server sees between the last condition that an act of ours needs and the act. Everything runs
// on the same machine, and hosts that act at once leave it no rest: with many clusters every request waits for a processor. Therefore it is
// also printed how busy the processors were, and how long a single write to the API server took until it was seen, which is what no reaction can
// be faster than. With -delay each stage of the many clusters takes its time, as on real hardware, where it is minutes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

var errMissed = errors.New("the clusters that were installed at once missed a target")

type options struct {
	clusters, samples int
	installed         int
	idle, timeout     time.Duration
	delay, profile    time.Duration
	sample, out, dir  string
}

func parseOptions() options {
	o := options{}
	flag.IntVar(&o.clusters, "clusters", 10, "clusters to install at once; 0 leaves this part out")
	flag.IntVar(&o.installed, "installed", 0, "single-node clusters that are installed already, beside those at once")
	flag.StringVar(&o.sample, "sample", sample, "what is installed at once: a file in config/samples without .yaml")
	flag.DurationVar(&o.profile, "profile", 0, "how long to write profiles of what the managers work on, from the time on at which the clusters are installed at once")
	flag.DurationVar(&o.delay, "delay", 0, "how long each stage takes of the hosts and clusters that are installed at once")
	flag.IntVar(&o.samples, "samples", 2, "clusters to install one at a time, each with a late worker; 0 leaves all single ones out")
	flag.DurationVar(&o.idle, "idle", time.Minute, "how long the installed cluster is watched for requests")
	flag.DurationVar(&o.timeout, "timeout", 10*time.Minute, "how long a cluster may take from apply to Available")
	flag.StringVar(&o.out, "out", "_artifacts/bench.json", "file for the results")
	flag.StringVar(&o.dir, "dir", "", "folder for logs (default: a new one below _artifacts)")
	flag.Parse()
	return o
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, parseOptions(), os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	report, err := measure(ctx, o, out)
	if err != nil {
		return err
	}
	if err := report.write(o.out); err != nil {
		return err
	}
	if err := report.print(out, o.out); err != nil {
		return err
	}
	if report.missed() {
		return errMissed
	}
	return nil
}
