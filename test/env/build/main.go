// Command build builds the missing components of the test environment, so that the first test does not spend its time
// on them. It installs PostgreSQL and Prometheus if they are missing and can be installed. The environment variable
// CORE is the folder below test/tools with the version of Cluster API core. With -demo it builds only the components of
// the demo.
package main

import (
	"context"
	"errors"
	"flag"
	"os"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/program"
)

func main() {
	program.Main(build)
}

func build(ctx context.Context) error {
	builder, err := components.NewBuilder(".", os.Stdout)
	if err != nil {
		return err
	}
	demo := flag.Bool("demo", false, "build what the demo needs, and nothing else")
	flag.Parse()
	if *demo {
		return builder.Build(ctx, components.Demo()...)
	}
	if err := builder.Build(ctx, components.All(os.Getenv("CORE"))...); err != nil {
		return err
	}
	return errors.Join(builder.ProvidePostgreSQL(ctx), builder.ProvidePrometheus(ctx))
}
