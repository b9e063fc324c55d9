package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/reader"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/report"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
)

func (p *plugin) waitCommand() *cobra.Command {
	var goal string
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "wait CLUSTER --for installed|upgraded|deleted",
		Short: "Wait until a cluster is installed, upgraded or deleted, or until that fails",
		Long: "Wait until a cluster is installed, upgraded or deleted. The wait ends earlier, with the cause, if the installation\n" +
			"or the upgrade fails. New causes are written to the standard error output.\n\n" +
			"Exit codes:\n  0  reached\n  1  the command failed, or objects are not readable\n" +
			"  2  not reached within --timeout, but no action is required\n" +
			"  3  failed, or not reached because an action is required or a step takes longer than usual",
		Example:           "  " + displayName + " wait ha --for installed --timeout 2h",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: p.completeClusters,
	}
	cmd.Flags().StringVar(&goal, "for", "", "What to wait for: installed, upgraded or deleted")
	cmd.Flags().DurationVar(&limit, "timeout", 2*time.Hour, "How long to wait")
	_ = cmd.MarkFlagRequired("for")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{judge.Installed, judge.Upgraded, judge.Deleted},
		cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !judge.IsGoal(goal) {
			return fmt.Errorf("--for %s is not supported. Use installed, upgraded or deleted", goal)
		}
		if limit <= 0 {
			return errors.New("--timeout must be positive")
		}
		h, err := p.connect()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), limit, errTimeout)
		defer cancel()
		w := waiter{plugin: p, hub: h, cluster: args[0], goal: goal}
		return w.wait(ctx, limit)
	}
	return cmd
}

var errTimeout = errors.New("the time is over")

// waiter waits until a cluster reaches a goal.
type waiter struct {
	*plugin
	hub           *hub
	cluster, goal string
	// last is the cluster when it was last read; failed is why the latest read failed, shown the cause that was last written.
	last   *snapshot.Cluster
	failed error
	shown  string
	// failingSince is when the cluster was first seen to report a failure of its upgrade, without an interruption since.
	failingSince time.Time
}

// failingTime is how long a cluster may report a failure of its upgrade before the wait ends. An operator that restarts
// during an upgrade is degraded for minutes.
const failingTime = 10 * time.Minute

// wait polls the cluster until it reaches the goal, fails, or the context ends.
func (w *waiter) wait(ctx context.Context, limit time.Duration) error {
	ticker := w.clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		ended, err := w.step(ctx)
		if ended {
			return err
		}
		select {
		case <-ctx.Done():
			return w.timeout(ctx, limit)
		case <-ticker.C():
		}
	}
}

// step reads the cluster once. It returns true if the wait ends.
func (w *waiter) step(ctx context.Context) (bool, error) {
	c, err := w.read(ctx, w.hub, w.cluster)
	switch {
	case reader.IsAbsent(err) && w.goal == judge.Deleted:
		return true, w.reached()
	case reader.IsAbsent(err), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), meta.IsNoMatchError(err):
		return true, err
	case err != nil:
		if ctx.Err() == nil { // the management cluster may be restarting
			w.failed = err
			w.log("warning: %v", err)
		}
		return false, nil
	case w.goal == judge.Deleted && w.last != nil && w.last.UID != c.UID:
		return true, w.reached() // a Cluster of the same name was created since
	}
	w.last, w.failed = c, nil
	progress, cause := judge.Toward(w.goal, c)
	switch progress {
	case judge.Reached:
		return true, w.reached()
	case judge.NeverReached:
		return true, w.explain(cause, exitCodeError(exitAttention))
	case judge.Pending:
	}
	if failing := w.failing(c); failing != nil {
		return true, w.explain(failing, exitCodeError(exitAttention))
	}
	if cause.State == judge.Unknown && !c.MayBeReadLater() {
		return true, w.explain(cause, exitCodeError(exitError))
	}
	if text := report.Line(cause); text != w.shown {
		w.shown = text
		w.log("%s %s", w.clock.Now().Format(time.TimeOnly), text)
	}
	return false, nil
}

// failing returns the failure of an upgrade that the cluster has reported for failingTime.
func (w *waiter) failing(c *snapshot.Cluster) *judge.Cause {
	cause := judge.FailingUpgrade(c)
	switch {
	case w.goal != judge.Upgraded || cause == nil:
		w.failingSince = time.Time{}
	case w.failingSince.IsZero():
		w.failingSince = w.clock.Now()
	case w.clock.Since(w.failingSince) >= failingTime:
		return cause
	}
	return nil
}

func (w *waiter) reached() error {
	state := "is " + w.goal
	if w.goal == judge.Deleted && w.last == nil {
		state = "does not exist" // the name may be wrong
	}
	_, err := fmt.Fprintf(w.streams.Out, "Cluster %s %s.\n", w.hub.keyIn(w.cluster), state)
	return err
}

// explain writes the cause, and returns the given error.
func (w *waiter) explain(cause *judge.Cause, end error) error {
	object := judge.Object{Kind: snapshot.KindCluster, Namespace: w.hub.namespace, Name: w.cluster}
	return errors.Join(report.WriteCause(w.streams.ErrOut, object, w.last.Time, cause), end)
}

// timeout returns how the wait ended at its time limit, or when it was interrupted.
func (w *waiter) timeout(ctx context.Context, limit time.Duration) error {
	if !errors.Is(context.Cause(ctx), errTimeout) {
		return errors.New("interrupted")
	}
	if w.last == nil {
		return fmt.Errorf("cluster %s could not be read within %s", w.hub.keyIn(w.cluster), limit)
	}
	if w.failed != nil {
		return fmt.Errorf("cluster %s is not known to be %s within %s: %w", w.hub.keyIn(w.cluster), w.goal, limit, w.failed)
	}
	_, cause := judge.Toward(w.goal, w.last)
	w.log("Cluster %s is not %s within %s.", w.hub.keyIn(w.cluster), w.goal, limit)
	code := exitFor(cause.State)
	if code == nil { // the cluster has no problem, and does not have the goal
		code = exitCodeError(exitProgressing)
	}
	return w.explain(cause, code)
}
