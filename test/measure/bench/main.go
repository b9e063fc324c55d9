// Package bench measures the resources of the managers (API requests, CPU time, peak memory, registry look-ups), and the
// reaction time of each hand-over. It installs the HA sample in the laboratory, with hosts and an
// assisted-service that act at once.
//
// It runs, one after the other:
//
//   - One cluster (3 control-plane hosts, 2 workers) with the release given by version: its installation, an idle time,
//     and its deletion. During the installation, programs run that only watch what the managers watch (package floor).
//   - With -samples, single clusters with the release given by digest. Each gets a third worker during its installation,
//     which has to wait until the cluster adds hosts. Then each is upgraded to its next patch, gets and loses a worker,
//     has a master replaced, and is deleted.
//   - In a second laboratory, -clusters clusters at once with the release given by version. HA clusters get a late worker
//     too. Their API servers are light ones (package lightapi), to leave the processors to the hub.
//
// With -installed, the second hub also has installed clusters (package seed). Our managers connect to them and reconcile
// them. All other controllers only watch the namespace that the clusters at once then share.
//
// Acts without a cause, causes without an act, and hand-overs that were never seen are in no figure. Targets limit their
// number.
//
// A reaction time is the time between the last condition for an act of ours and the act. One observer of the API server
// sees both. All processes share one machine, so with many clusters each request waits for a processor.
// Therefore the results also show how busy the processors were, and how long one write took until it was seen. With
// -delay each stage of the clusters at once takes this time, which is minutes on real hardware.
package bench

import (
	"context"
	"flag"
	"io"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

type options struct {
	results.Options

	samples, installed int
	timeout, delay     time.Duration
}

func parseOptions(args []string) (options, error) {
	o := options{Options: results.Options{Clusters: 10, Sample: sample, Out: "_artifacts/bench.json"}}
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	o.AddTo(flags)
	flags.IntVar(&o.installed, "installed", 0, "installed single-node clusters on the hub of the clusters at once")
	flags.DurationVar(&o.delay, "delay", 0, "duration of each stage of the hosts and clusters at once")
	flags.IntVar(&o.samples, "samples", 2, "clusters to install one after the other, each with a late worker; 0: no single clusters at all")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Minute, "time limit of a cluster from apply to Available")
	return o, flags.Parse(args)
}

// Run measures, and returns an error if a target is missed.
func Run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	report, err := measure(ctx, o, out)
	if err != nil {
		return err
	}
	report.judge(o)
	return results.Publish(report, o.Out, out)
}
