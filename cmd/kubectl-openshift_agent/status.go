package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/reader"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/report"
)

// interval is the shortest time between two reads of a watch or a wait.
const interval = 3 * time.Second

// nextRead returns the time from a read to the next. A watch occupies the API server for at most a tenth of the time, however
// many clusters a hub has.
func nextRead(duration time.Duration) time.Duration { return max(interval, 9*duration) }

// clearScreen moves the cursor to the top of a terminal and clears everything below.
const clearScreen = "\x1b[H\x1b[J"

func (p *plugin) statusCommand() *cobra.Command {
	var allNamespaces, watch bool
	cmd := &cobra.Command{
		Use:   "status [CLUSTER]",
		Short: "Show a cluster as a tree, or one line for each cluster",
		Long: "Show the tree of a cluster: Cluster, control plane, etcd members, upgrade, Machines, hosts, Agents and Nodes.\n" +
			"Without a name, show one line for each cluster. Clusters that need attention come first.",
		Example: "  " + displayName + " status ha\n  " + displayName + " status -A\n  " + displayName +
			" status ha -o jsonpath='{.cause.message}'",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: p.completeClusters,
	}
	cmd.Flags().BoolVarP(&allNamespaces, "all-namespaces", "A", false, "Show the clusters of all namespaces")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "Show changes until the command is interrupted")
	o := newOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if watch && !o.isText() {
			return errors.New("--watch shows text only. Remove --output")
		}
		if allNamespaces && len(args) > 0 {
			return errors.New("--all-namespaces shows all clusters. Remove the name, or set --namespace")
		}
		h, err := p.connect()
		if err != nil {
			return err
		}
		scope := reader.Scope{Namespace: h.namespace}
		if allNamespaces {
			scope.Namespace = ""
		}
		if len(args) > 0 {
			scope.Cluster, scope.Hosts = args[0], true
		}
		show := func(out io.Writer) error { return p.show(cmd.Context(), h, scope, o, out) }
		if watch {
			return p.watch(cmd.Context(), show)
		}
		return show(p.streams.Out)
	}
	return cmd
}

// show reads a scope once and writes its state.
func (p *plugin) show(ctx context.Context, h *hub, scope reader.Scope, o output, out io.Writer) error {
	s, err := reader.Read(ctx, h, scope, p.clock.Now())
	if err != nil {
		return err
	}
	clusters := report.All(s)
	switch {
	case scope.Cluster != "" && o.isText():
		return report.WriteTree(out, report.Tree(clusters[0]))
	case scope.Cluster != "":
		return o.write(out, "ClusterStatus", clusters[0])
	case o.isText():
		return report.WriteList(out, s, clusters)
	}
	return o.write(out, "ClusterStatusList", &struct {
		Items       []*report.Cluster `json:"items"`
		NotReadable map[string]string `json:"notReadable,omitempty"`
	}{clusters, s.NotReadable})
}

// watch shows changes until the context ends. On a terminal it replaces the text.
func (p *plugin) watch(ctx context.Context, show func(io.Writer) error) error {
	separator, screen := "\n", p.streams.Out
	if p.terminal != nil {
		separator, screen = clearScreen, p.terminal
	}
	var shown []byte
	for {
		var text bytes.Buffer
		start := p.clock.Now()
		if err := show(&text); err != nil {
			return ignoreInterrupt(ctx, err)
		}
		if !bytes.Equal(shown, text.Bytes()) {
			shown = bytes.Clone(text.Bytes())
			if _, err := io.WriteString(screen, separator); err != nil {
				return err
			}
			if _, err := p.streams.Out.Write(shown); err != nil {
				return err
			}
		}
		timer := p.clock.NewTimer(nextRead(p.clock.Since(start)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// ignoreInterrupt returns no error if the user has interrupted the command.
func ignoreInterrupt(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}
