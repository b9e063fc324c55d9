// Command vulnerabilities runs govulncheck on the modules of the product. It fails if the product calls code with a known
// vulnerability, in a module or in Go itself. It uses the live database of Go, or the pinned copy if the live database
// cannot be reached. Run it in its own folder:
//
//	go -C test/tools/vulnerabilities run . -root ../../..
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/mod/modfile"
	"golang.org/x/vuln/scan"
)

// modules are the modules of the product: its managers, the types of its APIs, and the kubectl plugin.
var modules = []string{
	".", filepath.Join("bootstrap", "api"), filepath.Join("controlplane", "api"), filepath.Join("cmd", "kubectl-openshift_agent"),
}

func main() {
	root := flag.String("root", filepath.Join("..", "..", ".."), "root of the repository")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := check(ctx, os.Stdout, *root)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(ctx context.Context, out io.Writer, root string) error {
	toolchain, err := readToolchain(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	// govulncheck reads the version of Go with the environment of this process, and not with that of its command.
	if err := os.Setenv("GOTOOLCHAIN", toolchain); err != nil {
		return fmt.Errorf("cannot choose the version of Go: %w", err)
	}
	used, err := choose(ctx, liveDatabase, pinnedCopy)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "vulnerabilities: %s, database %s\n", toolchain, used.description)
	var failures []error
	for _, module := range modules {
		fmt.Fprintf(out, "==> module %s\n", module)
		command := scan.Command(ctx, "-C", filepath.Join(root, module), "-db", used.url, "./...")
		command.Stdout = out
		err := command.Start()
		if err == nil {
			err = command.Wait()
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("vulnerabilities: module %s: %w", module, err))
		}
	}
	return errors.Join(failures...)
}

// readToolchain returns the version of Go that the managers of a release are built with.
func readToolchain(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("cannot read the version of Go: %w", err)
	}
	file, err := modfile.Parse(path, content, nil)
	if err != nil {
		return "", fmt.Errorf("cannot read the version of Go: %w", err)
	}
	if file.Toolchain == nil {
		return "", fmt.Errorf("%s has no toolchain line", path)
	}
	return file.Toolchain.Name, nil
}
