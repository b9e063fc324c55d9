// Command scale measures what the managers of this repository cost on a hub with many installed clusters, and compares
// it with targets: memory, goroutines, requests, CPU, how soon they are quiet after a start, and what they write in a
// restart.
//
//	bin/scale [-clusters 200] [-sample sno] [-dead 0.3] [-foreign 1] [-reactions 100] [-shards 2] [-out _artifacts/scale.json]
//
// It installs one cluster, with a single node, in the laboratory (package lab) and stops everything but etcd and the
// API servers. Then it writes as many clusters as wanted after that one into etcd, as they are after their
// installation, and starts the two managers, which are the real ones, under the roles and with the arguments that are
// shipped:
//
//   - a start, until they are quiet;
//   - an idle minute;
//   - a restart, until they are quiet;
//   - with -reactions, changes to which they react, one after the other.
//
// Behind the kubeconfigs of all clusters stands one API server, with the kinds and objects of an OpenShift cluster.
// Each cluster has an address on the loopback network, and certificate authorities, of its own.
//
// The results are printed beside the targets and written as JSON; profiles of the heaps lie beside the logs. The exit
// status is 1 when a target is missed.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/program"
)

type options struct {
	clusters, reactions, shards int
	dead, foreign, margin       float64
	idle, profile               time.Duration
	memory                      map[string]int
	sample, out, dir            string
	http1                       bool
}

var errMissed = errors.New("a target was missed")

func parseOptions() options {
	o := options{memory: map[string]int{}}
	controlPlane := flag.Int("controlplane-memory", 0,
		"memory limit of the control plane manager in MiB, which it has as GOMEMLIMIT (default: its target)")
	bootstrap := flag.Int("bootstrap-memory", 0, "memory limit of the bootstrap manager in MiB (default: its target)")
	flag.IntVar(&o.clusters, "clusters", 200, "installed clusters")
	flag.StringVar(&o.sample, "sample", "sno", "what is installed: a file in config/samples without .yaml")
	flag.Float64Var(&o.dead, "dead", 0,
		"share of the clusters whose API does not answer: one half accepts connections and is silent, the other refuses them")
	flag.BoolVar(&o.http1, "http1", false, "the API servers of the clusters speak no HTTP/2, as behind many load balancers")
	flag.Float64Var(&o.foreign, "foreign", 0,
		"what is on the hub that is not ours; 1: 20,000 BareMetalHosts, 10,000 Agents, 5,000 Secrets and 5,000 ConfigMaps")
	flag.IntVar(&o.reactions, "reactions", 0, "how often each reaction is timed")
	flag.IntVar(&o.shards, "shards", 0, "number of shards, by --watch-filter; the managers of one of them are measured")
	flag.Float64Var(&o.margin, "margin", 1, "what the targets are multiplied by, for machines that do other things too")
	flag.DurationVar(&o.idle, "idle", time.Minute, "how long the idle time is")
	flag.DurationVar(&o.profile, "profile", 0,
		"how long to write profiles of what the managers work on, from each start and from the beginning of the idle time on")
	flag.StringVar(&o.out, "out", "_artifacts/scale.json", "file for the results")
	flag.StringVar(&o.dir, "dir", "", "folder for logs and profiles (default: a new one below _artifacts)")
	flag.Parse()
	o.memory[env.ControlPlane], o.memory[env.Bootstrap] = *controlPlane, *bootstrap
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
