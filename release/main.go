// Command release writes what a release consists of into a folder: what clusterctl installs, laid out as its local
// repositories are, the bills of materials of the two managers, a Helm chart, and the checksums of all that. The same
// input gives the same bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1) //nolint:gocritic // nothing runs that the context would end
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	r := &release{}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&r.root, "root", ".", "top of the checkout")
	flags.StringVar(&r.out, "out", "out", "folder to write; a release that lies there is replaced")
	flags.StringVar(&r.version, "version", "", "version of the release, such as v0.1.0")
	flags.StringVar(&r.registry, "registry", "", "where the images of the managers lie, such as registry.example.com/openshift-agent")
	flags.StringVar(&r.imagesFile, "images", "", "file with the images by their digests, a line for each: they are released so, and by their version without it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := r.validate(); err != nil {
		return err
	}
	if err := r.readImages(); err != nil {
		return err
	}
	if err := r.write(ctx); err != nil {
		return err
	}
	text, err := r.publishing()
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}
