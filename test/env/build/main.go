// Command build builds the missing components of the test environment, so that the first test does not spend its time
// on them. It installs PostgreSQL, Prometheus and tmux if they are missing and can be installed, and Chromium if the
// environment variable REQUIRE_BROWSER is set. The environment variable CORE is the folder below test/tools with the
// version of Cluster API core. With -demo it builds only the components of the demo, and warns if the machine has less disk
// space or memory than the demo needs. With -program=etcd it builds only etcd and prints the path of the program: the
// product, which is another module, has tests with a real etcd.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
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
	demo := flag.Bool("demo", false, "build only the components of the demo")
	name := flag.String("program", "", "build only this program (etcd), and print its path")
	flag.Parse()
	switch {
	case *name != "":
		return printProgram(ctx, *name)
	case *demo:
		if err := warn(ctx, os.Stdout, builder); err != nil {
			return err
		}
		return builder.Build(ctx, components.Demo()...)
	}
	if err := builder.Build(ctx, components.All(os.Getenv("CORE"))...); err != nil {
		return err
	}
	return errors.Join(builder.ProvidePostgreSQL(ctx), builder.ProvidePrometheus(ctx), builder.ProvideTmux(ctx), builder.ProvideBrowser(ctx))
}

// programs are the components whose path can be printed.
var programs = map[string]components.Component{"etcd": components.Etcd}

// printProgram builds a program if necessary, and prints its path. The progress goes to standard error.
func printProgram(ctx context.Context, name string) error {
	component, known := programs[name]
	if !known {
		return fmt.Errorf("unknown program %q", name)
	}
	builder, err := components.NewBuilder(".", os.Stderr)
	if err != nil {
		return err
	}
	path, err := builder.Program(ctx, component)
	if err != nil {
		return err
	}
	_, err = fmt.Println(path)
	return err
}
