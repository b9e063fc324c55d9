// Command chaos installs, scales and deletes clusters in the laboratory (package lab) while everything around
// the managers of this repository fails. It checks continuously that the rules hold.
//
//	bin/chaos [-seed 7] [-rounds 1] [-clusters 9] [-storm 2m] [-only acts] [-bmo real] [-out _artifacts/chaos.json]
//
// A round applies its clusters at once, each with its own journey. Clusters are installed, get more workers and
// masters, have them replaced and removed, and are deleted, some before they are installed. Meanwhile
//
//   - requests of both managers to the API server, their answers and their watches are lost, delayed, repeated or\
//     refused (package faultproxy);
//   - so do those of all clients to the API servers of clusters, which are cut off for a while;
//   - the registry of release images and the downloads of assisted-service give no answers, or wrong ones;
//   - Cluster API core and CAPM3 are refused by the API server, and lose their watches;
//   - the managers are killed and restarted, or a second process runs that believes to be the leader;
//   - assisted-service does not answer for a while;
//   - the clocks of managers are wrong for a while;
//   - foreign clients delete and edit objects, foreign servers boot the images of Machines, and kubelet requests are forged.
//
// Then the faults stop, and all journeys must end within a time. The only help is a user who follows the advice
// of conditions.
//
// Each round has a seed; the next round has the next number. The seed selects the journeys, the acts and their
// times, and the requests that meet faults. It does not select the interleaving of processes: a defect that
// needs two events at the same moment may need several runs. The exit status is 1 if a rule was broken; the
// output then has the command that repeats the round.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/program"
)

type options struct {
	seed             uint64
	rounds, clusters int
	storm, bound     time.Duration
	only, out, dir   string
	operator         string
}

var errBroken = errors.New("a rule was broken")

func parseOptions() options {
	o := options{}
	flag.Uint64Var(&o.seed, "seed", 0, "seed of the first round (default: the time)")
	flag.IntVar(&o.rounds, "rounds", 1, "number of rounds")
	flag.IntVar(&o.clusters, "clusters", len(routes), "number of clusters in a round")
	flag.DurationVar(&o.storm, "storm", 2*time.Minute, "longest duration of the faults in a round")
	flag.DurationVar(&o.bound, "bound", 5*time.Minute, "longest duration of the journeys after the faults")
	flag.StringVar(&o.only, "only", "", "comma-separated names of the acts and faults that happen (default: all)")
	flag.StringVar(&o.operator, "bmo", string(lab.Simulated), "the Bare Metal Operator: simulated, or real")
	flag.StringVar(&o.out, "out", "_artifacts/chaos.json", "file for the figures")
	flag.StringVar(&o.dir, "dir", "", "folder for logs (default: a new one below _artifacts)")
	flag.Parse()
	if o.seed == 0 {
		o.seed = uint64(time.Now().Unix())
	}
	return o
}

// wants reports whether an act or a fault is selected.
func (o options) wants(name string) bool {
	return o.only == "" || slices.Contains(strings.Split(o.only, ","), name)
}

func main() {
	program.Main(func(ctx context.Context) error { return run(ctx, parseOptions(), os.Stdout) })
}

func run(ctx context.Context, o options, out io.Writer) error {
	report, err := runAll(ctx, o, out)
	if report == nil {
		return err
	}
	if problem := report.write(o.out); problem != nil {
		return errors.Join(err, problem)
	}
	report.print(out, o.out)
	if err == nil && report.broken() {
		return errBroken
	}
	return err
}
