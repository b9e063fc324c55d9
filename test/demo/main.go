// Command demo installs an OpenShift cluster on simulated bare metal. It runs real Kubernetes, Cluster API and CAPM3,
// the managers of this repository, and a simulated assisted-service. It applies one of config/samples and shows the
// progress until the Cluster is Available. -sample replace uses the sample compact with real etcd members, and then
// deletes a master. Its member leaves etcd, its host is released, and another host replaces it. -sample upgrade then
// upgrades the same cluster, host by host.
//
//	go -C test run ./demo [-sample <name>|replace|upgrade] [-keep]
//
// The environment variables SAMPLE and KEEP=1 do the same as the flags. On a terminal there is a live view, elsewhere a line
// for each change. The last line is
//
//	cluster=<ns/name> available=true machines=5/5 kubeconfig=<path> seconds=<n>
//
// and the exit status is 0. If the cluster does not become available in time, demo prints the blocker and exits with 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/reader"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/program"
)

const (
	// namespace is that of the demo's cluster.
	namespace = "demo"
	// replace continues with a cluster of the sample replaced, upgrade with a cluster of the sample upgraded.
	replace, replaced = "replace", "compact"
	upgrade, upgraded = "upgrade", "clusterclass"
	// release is the target of the upgrade, channel its channel in the update graph.
	release, channel = "4.20.8", "stable-4.20"
)

type options struct {
	sample  string
	keep    bool
	timeout time.Duration
	delay   time.Duration
	dir     string
	// pictures is the folder for pictures of the live view; none are taken when empty.
	pictures string
	// record is the folder for the objects of the cluster at each change of its state; none are stored when empty.
	record string
}

func parseOptions() options {
	sample := os.Getenv("SAMPLE")
	if sample == "" {
		sample = "ha"
	}
	keep, _ := strconv.ParseBool(os.Getenv("KEEP")) // anything else means no
	o := options{}
	flag.StringVar(&o.sample, "sample", sample,
		"sample to apply: a file in config/samples without .yaml, or replace, or upgrade (environment: SAMPLE)")
	flag.BoolVar(&o.keep, "keep", keep, "keep everything running until Ctrl-C (environment: KEEP=1)")
	flag.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long the cluster may take from apply to Available, and what follows")
	flag.DurationVar(&o.delay, "delay", 300*time.Millisecond, "how long each stage of hosts and cluster takes at least")
	flag.StringVar(&o.dir, "dir", "", "folder for logs and kubeconfigs (default: a new one below _artifacts)")
	flag.StringVar(&o.pictures, "pictures", "", "folder for pictures of the live view, as text with escape sequences (see make pictures)")
	flag.StringVar(&o.record, "record", "", "folder for the objects of the cluster at each change of its state, for tests of the plugin")
	flag.Parse()
	return o
}

func main() {
	program.Main(func(ctx context.Context) error {
		result, err := run(ctx, parseOptions())
		if err == nil && result != "" {
			fmt.Println("\nEverything is stopped. With KEEP=1 the demo leaves it running, and prints how to inspect it with kubectl.")
			fmt.Println(result)
		}
		return err
	})
}

// run returns the line that the demo ends with, once everything is stopped; with -keep the line was written before.
func run(ctx context.Context, o options) (string, error) {
	l, err := lab.New(ctx, lab.Options{Dir: o.dir, Out: os.Stdout, StageDelay: o.delay, LeaveSignals: true, AllClusters: o.keep})
	if err != nil {
		return "", err
	}
	defer l.Stop()
	begin := time.Now()
	cluster, err := apply(ctx, l, o)
	if err != nil {
		return "", err
	}
	hub, err := reader.NewClient(l.Env.Config(), nil)
	if err != nil {
		return "", err
	}
	installation := act{
		what: "available", begin: begin, timeout: o.timeout, done: func(s *observation) bool { return s.Available() },
		hub: hub, record: newRecorder(o.record),
	}
	if err := play(ctx, cluster, o, installation); err != nil {
		err = fmt.Errorf("%w\nlogs: %s", err, l.Dir())
		if o.keep && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, err)
			linger(ctx, l, "")
		}
		return "", err
	}
	kubeconfig, err := cluster.WriteKubeconfig(ctx)
	if err != nil {
		return "", err
	}
	state, err := cluster.State(ctx)
	if err != nil {
		return "", err
	}
	result := fmt.Sprintf("cluster=%s available=true machines=%d/%d kubeconfig=%s seconds=%.0f",
		cluster.Key(), state.Running(), state.Wanted, kubeconfig, time.Since(begin).Seconds())
	if o.keep {
		fmt.Println(result)
		linger(ctx, l, kubeconfig)
		return "", nil
	}
	return result, nil
}

// apply applies the sample. Where it goes on, etcd has members, and a host is spare.
func apply(ctx context.Context, l *lab.Lab, o options) (*lab.Cluster, error) {
	switch o.sample {
	case replace:
		return l.ApplySample(ctx, replaced, lab.Mutations{Namespace: namespace, EtcdMembers: true, ExtraHosts: 1})
	case upgrade:
		return l.ApplySample(ctx, upgraded, lab.Mutations{Namespace: namespace, EtcdMembers: true, Divert: lab.Forward})
	}
	return l.ApplySample(ctx, o.sample, lab.Mutations{Namespace: namespace})
}

// play shows the installation, and what follows it.
func play(ctx context.Context, cluster *lab.Cluster, o options, installation act) error {
	if err := followWithPictures(ctx, cluster, installation, o.pictures); err != nil {
		return err
	}
	state, err := cluster.State(ctx)
	if err != nil {
		return err
	}
	next := act{begin: time.Now(), timeout: o.timeout, hub: installation.hub, record: installation.record}
	switch o.sample {
	case replace:
		err = replaceMaster(ctx, cluster, state.Machines[0], &next)
	case upgrade:
		err = upgradeCluster(ctx, cluster, state, &next)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	return follow(ctx, cluster, next)
}

// followWithPictures takes pictures for a folder, if one is given.
func followWithPictures(ctx context.Context, cluster *lab.Cluster, a act, folder string) error {
	if folder == "" {
		return follow(ctx, cluster, a)
	}
	pictures, err := newAlbum(folder)
	if err != nil {
		return err
	}
	a.pictures = pictures
	if err := follow(ctx, cluster, a); err != nil {
		return err
	}
	return pictures.complete()
}

// replaceMaster deletes a master, in whose place another comes.
func replaceMaster(ctx context.Context, cluster *lab.Cluster, master lab.Machine, next *act) error {
	fmt.Printf("\nkubectl -n %s delete machine %s    # it runs on Node %s\n\n", namespace, master.Name, master.Status.NodeRef.Name)
	next.what, next.done = "replaced", func(s *observation) bool { return s.without(master) }
	return cluster.DeleteMachine(ctx, master)
}

// upgradeCluster publishes the next minor release for the cluster, and requests it with one change of the Cluster.
func upgradeCluster(ctx context.Context, cluster *lab.Cluster, state *lab.State, next *act) error {
	if _, err := cluster.Versions().Publish(release, channel); err != nil {
		return fmt.Errorf("cannot publish release %s: %w", release, err)
	}
	version, err := openshift.KubernetesVersion(release)
	if err != nil {
		return err
	}
	fmt.Printf("\n# In Cluster %s: topology.version %s, variables distributionVersion %s and upgradeChannel %s\n\n", state.Cluster.Name,
		version, release, channel)
	next.what, next.done = "upgraded", func(s *observation) bool { return s.runs(release, version) }
	return cluster.ChangeTopology(ctx, func(topology *clusterv1.Topology) error {
		return lab.RequestRelease(topology, version, release, channel)
	})
}

// linger prints how to inspect the laboratory, and waits for the end.
func linger(ctx context.Context, l *lab.Lab, kubeconfig string) {
	fmt.Printf("\nEverything keeps running until Ctrl-C. In another terminal:\n\n"+
		"  export KUBECONFIG=%s\n"+
		"  kubectl -n %s get clusters,oacp,machines,oac,bmh,infraenvs,agents,agentclusterinstalls\n"+
		"  kubectl -n %s describe oacp\n"+
		"  make build && bin/kubectl-openshift_agent -n %s status\n", l.Env.Kubeconfig(), namespace, namespace, namespace)
	if kubeconfig != "" {
		fmt.Printf("  kubectl --kubeconfig %s get nodes,clusterversion,clusteroperators\n", kubeconfig)
	}
	fmt.Printf("\nA cluster of your own is installed, too. Apply a sample, and a BareMetalHost with any BMC address for each Machine:\n\n"+
		"  kubectl create namespace mine\n"+
		"  kubectl -n mine apply -f config/samples/sno.yaml\n"+
		"  kubectl -n mine apply -f test/demo/host.yaml\n"+
		"\nLogs: %s\n\n", l.Dir())
	<-ctx.Done()
}

// errInterrupted is why a demo ends that is stopped by hand.
var errInterrupted = errors.New("interrupted")
