package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/reader"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/report"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// act is a part of the demonstration: what becomes of the cluster, since when, until it is done.
type act struct {
	what    string
	begin   time.Time
	timeout time.Duration
	done    func(*observation) bool
	// hub is the management cluster, as the kubectl plugin reads it.
	hub client.Reader
	// pictures are taken of it, unless nil.
	pictures *album
	// record stores the snapshots, unless nil.
	record *recorder
}

// look reads the cluster once.
func (a act) look(ctx context.Context, cluster *lab.Cluster, s *lab.State) *observation {
	seen := &observation{State: s, settled: cluster.Etcd() == nil || cluster.EtcdSettled(ctx) == nil}
	if read, err := a.readAsPlugin(ctx, cluster); err == nil { // otherwise the Cluster does not exist yet
		status := report.Of(read.All()[0])
		seen.tree = report.Tree(status)
		a.record.add(read, status)
	}
	if a.pictures != nil {
		a.pictures.add(cluster.Key().String(), a, seen)
	}
	return seen
}

// readAsPlugin reads the cluster as kubectl openshift-agent status does.
func (a act) readAsPlugin(ctx context.Context, cluster *lab.Cluster) (*snapshot.Snapshot, error) {
	return reader.Read(ctx, a.hub, reader.Scope{Namespace: cluster.Namespace, Cluster: cluster.Name, Hosts: true}, time.Now())
}

// observation is a cluster at one time.
type observation struct {
	*lab.State
	// tree is what the kubectl plugin shows of the cluster.
	tree report.Item
	// settled reports that the members of etcd are healthy, or that none exist.
	settled bool
}

// without reports whether a Machine was replaced, and all has settled.
func (s *observation) without(gone lab.Machine) bool {
	return s.Available() && s.settled && !slices.ContainsFunc(s.Machines, func(m lab.Machine) bool { return m.UID == gone.UID })
}

// runs reports whether the cluster was upgraded to a release, all Machines have its Kubernetes version, and all has
// settled.
func (s *observation) runs(release, version string) bool {
	return s.Available() && s.settled && s.ControlPlane != nil && s.ControlPlane.Status.DistributionVersion == release &&
		!slices.ContainsFunc(s.Machines, func(m lab.Machine) bool { return m.Spec.Version != version }) &&
		meta.IsStatusConditionFalse(s.ControlPlane.Status.Conditions, controlplanev1.RollingOutCondition)
}

// follow shows an act.
func follow(ctx context.Context, cluster *lab.Cluster, a act) error {
	ctx, cancel := context.WithTimeoutCause(ctx, a.timeout, fmt.Errorf("not within %s", a.timeout))
	defer cancel()
	var err error
	if term.IsTerminal(int(os.Stdout.Fd())) {
		err = followLive(ctx, cluster, a)
	} else {
		err = followPlainly(ctx, cluster, a, os.Stdout)
	}
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return errInterrupted
	}
	return err
}

// followLive draws the tree in place.
func followLive(ctx context.Context, cluster *lab.Cluster, a act) error {
	// Without input the terminal stays as it is, and Ctrl-C reaches the program as a signal.
	program := tea.NewProgram(newView(cluster.Key().String(), a), tea.WithInput(nil), tea.WithoutSignalHandler())
	result := make(chan error, 1)
	go func() {
		result <- cluster.Wait(ctx, a.what, func(s *lab.State) bool {
			seen := a.look(ctx, cluster, s)
			program.Send(seen)
			return a.done(seen)
		})
		program.Quit()
	}()
	_, err := program.Run()
	return errors.Join(<-result, err)
}

// followPlainly writes a line for each change.
func followPlainly(ctx context.Context, cluster *lab.Cluster, a act, out io.Writer) error {
	shown := map[string]string{}
	return cluster.Wait(ctx, a.what, func(s *lab.State) bool {
		seen := a.look(ctx, cluster, s)
		changes(out, shown, seen.tree)
		return a.done(seen)
	})
}

// changes writes what is new in a tree and remembers it.
func changes(out io.Writer, shown map[string]string, i report.Item) {
	text := i.Text
	if i.Problem != "" {
		text += " [" + i.Problem + "]"
	}
	if text != "" && shown[i.Title] != text {
		shown[i.Title] = text
		fmt.Fprintf(out, "%s %s: %s\n", time.Now().Format("15:04:05.000"), i.Title, text)
	}
	for _, child := range i.Children {
		changes(out, shown, child)
	}
}
