package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/reader"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// Exit codes. They are documented in docs/operations/kubectl-plugin.md.
const (
	// exitDone: nothing is left to do, or the wait reached its end.
	exitDone = 0
	// exitError: the command failed, or the objects are not readable.
	exitError = 1
	// exitProgressing: controllers or hosts work, and no action is required.
	exitProgressing = 2
	// exitAttention: the user has to act, a step takes longer than usual, or a pause blocks all steps.
	exitAttention = 3
)

// version is that of the release, which the linker sets.
var version = "dev"

// displayName is how a user calls the plugin.
const displayName = "kubectl openshift-agent"

// exitCodeError ends the program with a code. The command has written its output.
type exitCodeError int

// Error implements error.
func (c exitCodeError) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// exitFor returns the exit code of a state.
func exitFor(s judge.State) error {
	switch {
	case s == judge.Ready:
		return nil
	case s == judge.Unknown:
		return exitCodeError(exitError)
	case s.NeedsAttention():
		return exitCodeError(exitAttention)
	}
	return exitCodeError(exitProgressing)
}

// hub is the management cluster of the user's kubeconfig.
type hub struct {
	reader.API
	// namespace is that of the flags or of the context.
	namespace string
	// pods reads the logs of containers.
	pods clientcorev1.PodsGetter
	// local is true if the API server has a loopback address.
	local bool
}

// maxResponse is the size of one response of the API server, in bytes. A page of 200 Agents takes about 10 MiB.
const maxResponse = 256 << 20

// limitResponses limits the responses of the API server.
func limitResponses(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return bound.LimitBodies(next, func(*http.Response) int64 { return maxResponse })
	})
	return config
}

// connect returns the management cluster that the flags select.
func connect(flags *genericclioptions.ConfigFlags) (*hub, error) {
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{}
	mapper, err := flags.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	api, err := reader.NewClient(config, mapper)
	if err != nil {
		return nil, err
	}
	pods, err := clientcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the management cluster: %w", err)
	}
	return &hub{API: api, namespace: namespace, pods: pods, local: isLocal(config)}, nil
}

// plugin is what the commands have in common.
type plugin struct {
	// streams escape what controls a terminal.
	streams genericiooptions.IOStreams
	// terminal is the terminal of the output. It is nil if the output is no terminal.
	terminal io.Writer
	clock    clock.WithTicker
	flags    *genericclioptions.ConfigFlags
	connect  func() (*hub, error)
}

// run runs a command and returns its exit code.
func run(ctx context.Context, p *plugin, args []string) int {
	root := p.command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var code exitCodeError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &code):
		return int(code)
	}
	p.log("error: %v", err)
	return exitError
}

// log writes a line to the standard error output. If that is closed, the line is lost and the command continues.
func (p *plugin) log(format string, args ...any) {
	_, _ = fmt.Fprintf(p.streams.ErrOut, format+"\n", args...)
}

func (p *plugin) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-openshift_agent",
		Short: "Show and explain clusters of the OpenShift agent providers",
		Long: "Show and explain clusters of the OpenShift agent providers.\n\n" +
			"The commands read the objects of the management cluster with your rights. They change nothing.\n" +
			"Only versions --pull-secret reads the content of a Secret.",
		Version:       version,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: displayName},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(p.streams.In)
	root.SetOut(p.streams.Out)
	root.SetErr(p.streams.ErrOut)
	p.flags.AddFlags(root.PersistentFlags())
	root.AddCommand(p.statusCommand(), p.whyCommand(), p.waitCommand(), p.hostsCommand(), p.versionsCommand(),
		p.gatherCommand())
	return root
}

// read reads one cluster.
func (p *plugin) read(ctx context.Context, h *hub, name string) (*snapshot.Cluster, error) {
	s, err := reader.Read(ctx, h, reader.Scope{Namespace: h.namespace, Cluster: name}, p.clock.Now())
	if err != nil {
		return nil, err
	}
	return s.All()[0], nil
}

// completionTimeout is how long a shell waits for names.
const completionTimeout = 5 * time.Second

// completeClusters completes the name of a Cluster.
func (p *plugin) completeClusters(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	h, err := p.connect()
	if len(args) > 0 || err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	names, err := reader.Names(ctx, h, h.namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// keyIn returns the key of an object in the namespace of the user.
func (h *hub) keyIn(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: h.namespace, Name: name}
}
