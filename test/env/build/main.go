// Command build builds the components of the test environment that are not built yet, so that the first test does not
// spend its time on it. The environment variable CORE is the folder below test/tools whose version of Cluster API core is
// wanted.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := env.Build(ctx, ".", os.Getenv("CORE"), os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
