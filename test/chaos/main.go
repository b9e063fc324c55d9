// Command chaos installs, scales and deletes clusters in the laboratory (package lab) while everything around the
// managers of this repository goes wrong, and looks all the time whether what must never happen does.
//
//	go run ./test/chaos [-seed 7] [-rounds 1] [-clusters 9] [-storm 2m] [-only acts] [-bmo real] [-out _artifacts/chaos.json]
//
// A round applies its clusters at once, each with a journey of its own: it is installed, workers and masters are added,
// replaced and taken away, it is deleted, some before they are installed. Meanwhile
//
//   - requests of both managers to the API server, their answers and their watches get lost, come late, come twice or are refused (package unreliable);
//   - so do those of all clients to the API servers of clusters, which are cut off for a while;
//   - the registry of release images and the downloads of assisted-service give no answers, or wrong ones;
//   - Cluster API core and CAPM3 are refused by the API server, and lose their watches;
//   - the managers are killed and started again, or get a second one beside them that believes to be the leader;
//   - assisted-service does not answer for a while;
//   - the clocks of managers are wrong for a while;
//   - somebody deletes and edits objects that are not his, strangers boot the images of Machines, and forge the requests of kubelets.
//
// Then there is calm, and all must come to its end within a time, without help but that of a user who does what the conditions tell.
//
// Each round has a seed, the next one that of its predecessor plus one. It decides the journeys, the acts and their
// times, and which request meets which fault. How processes interleave no seed decides: a defect that needs two things
// at the same moment may need some runs. The exit status is 1 when a rule was broken; what is printed then says how to
// run that round again.
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
	flag.Uint64Var(&o.seed, "seed", 0, "what decides the first round (default: the time)")
	flag.IntVar(&o.rounds, "rounds", 1, "rounds, one after the other")
	flag.IntVar(&o.clusters, "clusters", len(routes), "clusters of a round")
	flag.DurationVar(&o.storm, "storm", 2*time.Minute, "how long things go wrong in a round, unless all its journeys end before")
	flag.DurationVar(&o.bound, "bound", 5*time.Minute, "how long the journeys may go on afterwards")
	flag.StringVar(&o.only, "only", "", "comma-separated names of acts and faults: nothing else goes wrong (default: everything)")
	flag.StringVar(&o.operator, "bmo", string(lab.Simulated), "the Bare Metal Operator: simulated, or real")
	flag.StringVar(&o.out, "out", "_artifacts/chaos.json", "file for the figures")
	flag.StringVar(&o.dir, "dir", "", "folder for logs (default: a new one below _artifacts)")
	flag.Parse()
	if o.seed == 0 {
		o.seed = uint64(time.Now().Unix())
	}
	return o
}

// wants reports whether an act or a fault is to happen.
func (o options) wants(name string) bool {
	return o.only == "" || slices.Contains(strings.Split(o.only, ","), name)
}

func main() {
	program.Main(func(ctx context.Context) error { return run(ctx, parseOptions(), os.Stdout) })
}

func run(ctx context.Context, o options, out io.Writer) error {
	report, err := rage(ctx, o, out)
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
