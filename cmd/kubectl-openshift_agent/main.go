// Command kubectl-openshift_agent is the kubectl plugin of the providers: kubectl openshift-agent. It shows the clusters
// of a management cluster and names the first cause of a problem. It waits for the end of an installation, an upgrade or a
// deletion. It reads the Kubernetes version of a release from its image. It writes what a person needs to analyze a
// cluster to an archive. It changes nothing in the management cluster, and reads the content of a Secret only for versions
// --pull-secret.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	log.SetLogger(logr.Discard()) // the client would complain about a missing logger
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	flags := genericclioptions.NewConfigFlags(true).WithWrapConfigFn(limitResponses)
	p := &plugin{
		streams: genericiooptions.IOStreams{In: os.Stdin, Out: screen{os.Stdout}, ErrOut: screen{os.Stderr}},
		clock:   clock.RealClock{}, flags: flags, connect: func() (*hub, error) { return connect(flags) },
	}
	if term.IsTerminal(int(os.Stdout.Fd())) {
		p.terminal = os.Stdout
	}
	code := run(ctx, p, os.Args[1:])
	stop()
	os.Exit(code)
}
