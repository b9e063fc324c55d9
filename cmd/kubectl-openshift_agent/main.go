// Command kubectl-openshift_agent is the kubectl plugin of the providers: kubectl openshift-agent. It shows the clusters
// of a management cluster, names the first cause of a problem, and waits for the end of an installation, an upgrade or a
// deletion. It only reads the management cluster. It reads no Secrets.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	log.SetLogger(logr.Discard()) // the client would complain about a missing logger
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	flags := genericclioptions.NewConfigFlags(true)
	code := run(ctx, &plugin{
		streams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		clock:   clock.RealClock{}, flags: flags, connect: func() (*hub, error) { return connect(flags) },
	}, os.Args[1:])
	stop()
	os.Exit(code)
}
