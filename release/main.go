// Command release writes the files of a release to a folder. The folder has the layout of a local repository of
// clusterctl. It also contains a software bill of materials of each manager, a Helm chart, further manifests, samples,
// and checksums. Equal input gives equal bytes.
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
	flags.StringVar(&r.out, "out", "out", "folder to write; a release in the folder is replaced")
	flags.StringVar(&r.version, "version", "", "version of the release, such as v0.1.0")
	flags.StringVar(&r.registry, "registry", "",
		"registry and path of the images of the managers, such as registry.example.com/openshift-agent")
	flags.StringVar(&r.imagesFile, "images", "",
		"file with the images by digest, one per line; without a file the release names the images by version")
	flags.StringVar(&r.assets, "assets", "",
		"new folder for the same files with the names of a GitHub release, which has no folders; without it they are not written")
	flags.BoolVar(&r.plugin, "plugin", false, "build the kubectl plugin for all platforms and add its archives")
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
