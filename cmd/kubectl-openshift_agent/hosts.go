package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/reader"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/report"
)

func (p *plugin) hostsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hosts [CLUSTER]",
		Short: "Show which BareMetalHosts fit the Machines that wait, and why the others do not",
		Long: "Show which BareMetalHosts of the namespace fit the Machines that wait for a host, and why the others do not.\n" +
			"Metal3 chooses the host. The command applies the rules of Metal3 and of the bootstrap provider.\n\n" +
			"Exit codes:\n  0  a BareMetalHost fits each Machine that waits\n  1  the command failed, or objects are not readable\n" +
			"  3  no BareMetalHost fits one of the Machines, or the provider reports a problem",
		Example:           "  " + displayName + " hosts ha",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: p.completeClusters,
	}
	o := newOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		h, err := p.connect()
		if err != nil {
			return err
		}
		cluster := ""
		if len(args) > 0 {
			cluster = args[0]
		}
		return p.hosts(cmd.Context(), h, cluster, o)
	}
	return cmd
}

// hosts writes which BareMetalHosts fit the Machines that wait. Its error is the exit code.
func (p *plugin) hosts(ctx context.Context, h *hub, cluster string, o output) error {
	inventory, err := reader.ReadInventory(ctx, h, h.namespace, cluster)
	if err != nil {
		return err
	}
	fits := judge.Fits(inventory)
	if o.isText() {
		err = report.WriteFits(p.streams.Out, inventory, fits)
	} else {
		err = o.write(p.streams.Out, "HostFitList", &struct {
			Items       []judge.Fit       `json:"items"`
			NotReadable map[string]string `json:"notReadable,omitempty"`
		}{fits, inventory.NotReadable})
	}
	if err != nil {
		return err
	}
	for i := range fits {
		if !fits[i].HasHost() {
			return exitCodeError(exitAttention)
		}
	}
	if len(inventory.NotReadable) > 0 {
		return exitCodeError(exitError)
	}
	return nil
}
