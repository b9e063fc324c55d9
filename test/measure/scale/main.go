// Package scale measures the managers on a hub with many installed clusters: memory, goroutines, requests and CPU time. It
// also measures the time until they are quiet after a start, and their writes in a restart.
//
// It installs one single-node cluster in the laboratory and stops all processes except etcd and the API servers. Then it
// writes copies of this cluster into etcd (package seed), and starts the two managers with their shipped roles and
// arguments:
//
//   - A start, until they are quiet.
//   - An idle minute.
//   - A restart, until they are quiet.
//   - With -reactions, changes to which they react, one after the other.
//
// The kubeconfigs of all clusters lead to one API server with the kinds and objects of an OpenShift cluster. Each cluster
// has its own address on the loopback network and its own certificate authorities.
package scale

import (
	"context"
	"flag"
	"io"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

type options struct {
	results.Options

	reactions, shards int
	dead, foreign     float64
	memory            map[string]*int
	http1             bool
}

func parseOptions(args []string) (options, error) {
	o := options{Options: results.Options{Clusters: 200, Sample: "sno", Out: "_artifacts/scale.json"}, memory: map[string]*int{}}
	flags := flag.NewFlagSet("scale", flag.ExitOnError)
	o.AddTo(flags)
	o.memory[env.ControlPlane] = flags.Int("controlplane-memory", 0, "GOMEMLIMIT of the control plane manager in MiB (default: by its target)")
	o.memory[env.Bootstrap] = flags.Int("bootstrap-memory", 0, "GOMEMLIMIT of the bootstrap manager in MiB (default: by its target)")
	flags.Float64Var(&o.dead, "dead", 0,
		"share of the clusters whose API does not answer: one half accepts connections without answer, the other refuses them")
	flags.BoolVar(&o.http1, "http1", false, "the API servers of the clusters serve no HTTP/2, as behind many load balancers")
	flags.Float64Var(&o.foreign, "foreign", 0,
		"share of foreign objects on the hub; 1: 20,000 BareMetalHosts, 10,000 Agents, 5,000 Secrets and 5,000 ConfigMaps")
	flags.IntVar(&o.reactions, "reactions", 0, "number of samples of each reaction")
	flags.IntVar(&o.shards, "shards", 0, "number of shards, by --watch-filter; the managers of one of them are measured")
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
