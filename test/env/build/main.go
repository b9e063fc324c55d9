// Command build builds the components of the test environment that are not built yet, so that the first test does not
// spend its time on it, and installs PostgreSQL and Prometheus where they are missing and may be installed. The environment variable CORE is the
// folder below test/tools whose version of Cluster API core is wanted.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := build(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func build(ctx context.Context) error {
	builder, err := components.NewBuilder(".", os.Stdout)
	if err != nil {
		return err
	}
	if err := builder.Build(ctx, components.All(os.Getenv("CORE"))...); err != nil {
		return err
	}
	return errors.Join(builder.ProvidePostgreSQL(ctx), builder.ProvidePrometheus(ctx))
}
