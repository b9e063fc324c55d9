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

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// act is a part of the demonstration: what becomes of the cluster, since when, until it is done.
type act struct {
	what    string
	begin   time.Time
	timeout time.Duration
	done    func(*snapshot) bool
	// pictures are taken of it, unless nil.
	pictures *album
}

// look takes a look at the cluster.
func (a act) look(ctx context.Context, cluster *lab.Cluster, s *lab.State) *snapshot {
	seen := look(ctx, cluster, s)
	if a.pictures != nil {
		a.pictures.add(cluster.Key().String(), a, seen)
	}
	return seen
}

// snapshot is a cluster at one time.
type snapshot struct {
	*lab.State
	// etcd are the members of etcd, if they exist and answer. settled reports that they are healthy, or that none
	// exist.
	etcd    []lab.EtcdMember
	settled bool
}

func look(ctx context.Context, cluster *lab.Cluster, s *lab.State) *snapshot {
	if cluster.Etcd() == nil {
		return &snapshot{State: s, settled: true}
	}
	members, err := cluster.EtcdMembers(ctx)
	if err != nil { // there are none yet, or too few
		return &snapshot{State: s}
	}
	return &snapshot{State: s, etcd: members, settled: cluster.EtcdSettled(ctx) == nil}
}

// without reports whether a Machine was replaced, and all has settled.
func (s *snapshot) without(gone lab.Machine) bool {
	return s.Available() && s.settled && !slices.ContainsFunc(s.Machines, func(m lab.Machine) bool { return m.UID == gone.UID })
}

// runs reports whether the cluster was upgraded to a release, all Machines have its Kubernetes version, and all has
// settled.
func (s *snapshot) runs(release, version string) bool {
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
		changes(out, shown, treeOf(seen))
		return a.done(seen)
	})
}

// changes writes what is new in a tree and remembers it.
func changes(out io.Writer, shown map[string]string, i item) {
	text := i.state
	if i.waits != "" && !i.done {
		text += " [" + i.waits + "]"
	}
	if text != "" && shown[i.title] != text {
		shown[i.title] = text
		fmt.Fprintf(out, "%s %s: %s\n", time.Now().Format("15:04:05.000"), i.title, text)
	}
	for _, child := range i.children {
		changes(out, shown, child)
	}
}
