package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/reader"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/report"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
)

func (p *plugin) whyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why (CLUSTER | MACHINE)",
		Short: "Show the first cause of the state of a cluster or Machine, and what to do",
		Long: "Show the first cause of the state of a cluster or Machine, what to do, and the objects that report the cause.\n" +
			"If a Cluster and a Machine have the same name, write cluster/NAME or machine/NAME.\n\n" +
			"Exit codes:\n  0  nothing is left to do\n  1  the command failed, or objects are not readable\n" +
			"  2  controllers or hosts work, and no action is required\n" +
			"  3  an action is required, a step takes longer than usual, or the cluster is paused",
		Example:           "  " + displayName + " why ha\n  " + displayName + " why machine/ha-x7k2p",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: p.completeClusters,
	}
	o := newOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		h, err := p.connect()
		if err != nil {
			return err
		}
		object, cause, s, err := p.why(cmd.Context(), h, args[0])
		if err != nil {
			return err
		}
		if o.isText() {
			err = report.WriteCause(p.streams.Out, object, s.Time, cause)
		} else {
			err = o.write(p.streams.Out, "Cause", report.Explain(cause))
		}
		if err != nil {
			return err
		}
		return exitFor(cause.State)
	}
	return cmd
}

// why returns the first cause of the state of a Cluster or Machine.
func (p *plugin) why(ctx context.Context, h *hub, argument string) (judge.Object, *judge.Cause, *snapshot.Cluster, error) {
	kind, name, hasKind := strings.Cut(argument, "/")
	if !hasKind {
		kind, name = "", argument
	}
	switch strings.ToLower(kind) {
	case "", "cluster", "clusters":
		c, err := p.read(ctx, h, name)
		if err == nil {
			cause := judge.Cluster(c)
			return judge.Object{Kind: snapshot.KindCluster, Namespace: c.Namespace, Name: c.Name}, &cause, c, nil
		}
		if hasKind || !apierrors.IsNotFound(err) {
			return judge.Object{}, nil, nil, err
		}
	case "machine", "machines":
	default:
		return judge.Object{}, nil, nil, fmt.Errorf("%s is not supported. Name a cluster or a machine", kind)
	}
	cause, c, err := p.whyMachine(ctx, h, name)
	if apierrors.IsNotFound(err) && !hasKind {
		err = fmt.Errorf("namespace %s has neither a Cluster nor a Machine %s", h.namespace, name)
	}
	return judge.Object{Kind: snapshot.KindMachine, Namespace: h.namespace, Name: name}, cause, c, err
}

func (p *plugin) whyMachine(ctx context.Context, h *hub, name string) (*judge.Cause, *snapshot.Cluster, error) {
	cluster, err := reader.ClusterOf(ctx, h, h.keyIn(name))
	if err != nil {
		return nil, nil, err
	}
	c, err := p.read(ctx, h, cluster)
	if err != nil {
		return nil, nil, err
	}
	for i := range c.Machines {
		if c.Machines[i].Name == name {
			cause := judge.Machine(c, &c.Machines[i])
			return &cause, c, nil
		}
	}
	return nil, nil, fmt.Errorf("machine %s of Cluster %s is not readable, or has no label of its Cluster", name, cluster)
}
