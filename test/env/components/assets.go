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

// Assets is the environment variable with the folder of a kube-apiserver and an etcd that are there already, as
// setup-envtest installs them. They are taken where they are not older than the minor version that would be built.
const Assets = "KUBEBUILDER_ASSETS"

// offered returns the path of the program that [Assets] offers for a component; empty where it has to be built.
func (b *Builder) offered(ctx context.Context, c Component) string {
	folder := os.Getenv(Assets)
	if folder == "" || !c.prebuilt {
		return ""
	}
	program := filepath.Join(folder, c.binary)
	if err := b.suits(ctx, c, program); err != nil {
		b.once("%s has no %s for us, it is built: %v", Assets, c.binary, err)
		return ""
	}
	b.once("%s is that of %s: %s", c.binary, Assets, program)
	return program
}

// suits tells why a program cannot be taken for a component.
func (b *Builder) suits(ctx context.Context, c Component, program string) error {
	pinned, err := b.version(c)
	if err != nil {
		return err
	}
	if _, err := os.Stat(program); err != nil {
		return err
	}
	said, err := run(ctx, b.root, program, "--version")
	if err != nil {
		return err
	}
	return recentEnough(string(said), pinned)
}

// versions is how kube-apiserver (Kubernetes v1.36.3) and etcd (etcd Version: 3.6.5) say theirs.
var versions = regexp.MustCompile(`\bv?(\d+\.\d+\.\d+\S*)`)

// recentEnough compares the version in what a program said with the one that would be built. Of another minor version
// than Kubernetes' controllers, which are always built, kube-apiserver may only be newer
// (kubernetes.io/releases/version-skew-policy).
func recentEnough(said, pinned string) error {
	found := versions.FindStringSubmatch(said)
	if found == nil {
		return errors.New("it does not say its version")
	}
	is, err := semver.Parse(found[1])
	if err != nil {
		return fmt.Errorf("it does not say its version: %w", err)
	}
	least, err := semver.ParseTolerant(pinned)
	if err != nil {
		return fmt.Errorf("cannot read version %s: %w", pinned, err)
	}
	if is.Major != least.Major || is.Minor < least.Minor {
		return fmt.Errorf("its version is %s, and needs to be at least %d.%d.0", is, least.Major, least.Minor)
	}
	return nil
}
