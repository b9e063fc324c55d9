// Command bench measures what the managers of this repository cost and how long they take to act: reaction times at every hand-over, API
// requests, CPU time, peak memory, registry look-ups. It installs the HA sample in the laboratory (package lab), with hosts and an
// assisted-service that act at once; the managers, Cluster API, CAPM3 and the API server are the real ones.
//
//	bin/bench [-clusters 10] [-installed 1000] [-sample ha] [-delay 0s] [-samples 2] [-profile 60s] [-margin 1] [-out _artifacts/bench.json]
//
// It runs, one after the other:
//
//   - one cluster (3 control-plane hosts, 2 workers) with the release given by version: requests, then an idle minute, CPU and memory, then its deletion;
//   - as many single clusters as -samples says, the release given by digest, each with a third worker that is added while the cluster
//     installs and so has to wait until it adds hosts; each is then upgraded to its next patch, gets and loses a worker, has a master replaced, and is deleted;
//   - in a second laboratory, as many clusters as -clusters says at once, the release given by version, HA ones with such a late worker too. Their own
//     API servers are light ones (package lightapi): kube-apiservers for all of them would take what no real hub has to give.
//
// With -installed, installed clusters stand beside those at once (package seed). Our managers connect to them and
// reconcile them; all other controllers look at the namespace of those at once alone, and the clusters at once have one
// namespace together.
//
// The results are printed with the targets (targets.go) and written as JSON. The exit status is 1 when one of the
// targets was missed; -margin multiplies them, for a machine that does other things too. What is in no figure is one
// itself: acts for which no cause was seen, causes after which no act was, and hand-overs of which nothing was seen.
// With -profile, what the managers work on lies beside the logs.
//
// A reaction time is what one observer of the API server sees between the last condition that an act of ours needs and
// the act. Everything runs on the same machine, and hosts that act at once leave it no rest: with many clusters every
// request waits for a processor. Therefore it is also printed how busy the processors were, and how long a single write
// to the API server took until it was seen, which is what no reaction can be faster than. With -delay each stage of the
// many clusters takes its time, as on real hardware, where it is minutes.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/program"
)

var errMissed = errors.New("a target was missed")

type options struct {
	clusters, samples int
	installed         int
	idle, timeout     time.Duration
	delay, profile    time.Duration
	sample, out, dir  string
	margin            float64
}

func parseOptions() options {
	o := options{}
	flag.IntVar(&o.clusters, "clusters", 10, "clusters to install at once; 0 leaves this part out")
	flag.IntVar(&o.installed, "installed", 0, "single-node clusters that are installed already, beside those at once")
	flag.StringVar(&o.sample, "sample", sample, "what is installed at once: a file in config/samples without .yaml")
	flag.DurationVar(&o.profile, "profile", 0,
		"how long to write profiles of what the managers work on, from the time on at which the clusters are installed at once")
	flag.DurationVar(&o.delay, "delay", 0, "how long each stage takes of the hosts and clusters that are installed at once")
	flag.IntVar(&o.samples, "samples", 2, "clusters to install one at a time, each with a late worker; 0 leaves all single ones out")
	flag.DurationVar(&o.idle, "idle", time.Minute, "how long the installed cluster is watched for requests")
	flag.DurationVar(&o.timeout, "timeout", 10*time.Minute, "how long a cluster may take from apply to Available")
	flag.Float64Var(&o.margin, "margin", 1, "what the targets are multiplied by, for machines that do other things too")
	flag.StringVar(&o.out, "out", "_artifacts/bench.json", "file for the results")
	flag.StringVar(&o.dir, "dir", "", "folder for logs (default: a new one below _artifacts)")
	flag.Parse()
	return o
}

func main() {
	program.Main(func(ctx context.Context) error { return run(ctx, parseOptions(), os.Stdout) })
}

func run(ctx context.Context, o options, out io.Writer) error {
	report, err := measure(ctx, o, out)
	if err != nil {
		return err
	}
	report.judge(o)
	return tell(report, o.out, out)
}

// tell writes a report, prints it, and fails when it misses a target.
func tell(report *report, path string, out io.Writer) error {
	if err := report.write(path); err != nil {
		return err
	}
	if err := report.print(out, path); err != nil {
		return err
	}
	if report.missed() {
		return errMissed
	}
	return nil
}
