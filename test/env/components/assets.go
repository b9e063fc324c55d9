package components

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/blang/semver/v4"
)

// Assets is the environment variable with the folder of an existing kube-apiserver and etcd, as setup-envtest
// installs them. Programs older than the minor version that would be built are ignored.
const Assets = "KUBEBUILDER_ASSETS"

// offered returns the path of the program in [Assets] for a component, or "" if it must be built.
func (b *Builder) offered(ctx context.Context, c Component) string {
	folder := os.Getenv(Assets)
	if folder == "" || !c.prebuilt {
		return ""
	}
	program := filepath.Join(folder, c.binary)
	if err := b.suits(ctx, c, program); err != nil {
		b.once("%s has no suitable %s, it is built: %v", Assets, c.binary, err)
		return ""
	}
	b.once("%s is taken from %s: %s", c.binary, Assets, program)
	return program
}

// suits returns an error if a program cannot be used for a component.
func (b *Builder) suits(ctx context.Context, c Component, program string) error {
	pinned, err := b.version(c)
	if err != nil {
		return err
	}
	if _, err := os.Stat(program); err != nil {
		return err
	}
	output, err := run(ctx, b.root, program, "--version")
	if err != nil {
		return err
	}
	return recentEnough(string(output), pinned)
}

// versions matches the output of kube-apiserver (Kubernetes v1.36.3) and etcd (etcd Version: 3.6.5).
var versions = regexp.MustCompile(`\bv?(\d+\.\d+\.\d+\S*)`)

// recentEnough compares the version in a program's output with the version that would be built. kube-apiserver
// may only be newer than Kubernetes' controllers, which are always built
// (kubernetes.io/releases/version-skew-policy).
func recentEnough(output, pinned string) error {
	found := versions.FindStringSubmatch(output)
	if found == nil {
		return errors.New("its output has no version")
	}
	is, err := semver.Parse(found[1])
	if err != nil {
		return fmt.Errorf("its output has no version: %w", err)
	}
	least, err := semver.ParseTolerant(pinned)
	if err != nil {
		return fmt.Errorf("cannot read version %s: %w", pinned, err)
	}
	if is.Major != least.Major || is.Minor < least.Minor {
		return fmt.Errorf("its version is %s, but must be at least %d.%d.0", is, least.Major, least.Minor)
	}
	return nil
}
