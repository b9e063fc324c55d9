package components

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/browser"
)

// servicePolicy is the program that decides for Debian's packages whether they may start services.
const servicePolicy = "/usr/sbin/policy-rc.d"

// Promtool returns the path of promtool, which tests alerts.
func Promtool() (string, error) { return ofPrometheus("promtool") }

// Prometheus returns the path of Prometheus itself.
func Prometheus() (string, error) { return ofPrometheus("prometheus") }

func ofPrometheus(name string) (string, error) {
	program, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the tests of alerts and dashboard need %s, which is not installed: run make components "+
			"(Debian, Ubuntu, as root), or install the package prometheus or golang-github-prometheus (Fedora); "+
			"its service need not run", name)
	}
	return program, nil
}

// ProvidePrometheus installs Prometheus or promtool if missing and permitted; otherwise it returns an error
// with instructions.
func (b *Builder) ProvidePrometheus(ctx context.Context) error {
	return b.provide(ctx, "prometheus", func() error {
		_, tests := Promtool()
		_, itself := Prometheus()
		return cmp.Or(tests, itself)
	})
}

// ProvideTmux installs tmux if missing and permitted. The tests of the kubectl plugin need a terminal.
func (b *Builder) ProvideTmux(ctx context.Context) error {
	return b.provide(ctx, "tmux", func() error {
		if _, err := exec.LookPath("tmux"); err != nil {
			return errors.New("the test of kubectl openshift-agent status --watch needs tmux, which is not installed: install the package tmux")
		}
		return nil
	})
}

// ProvideBrowser installs Chromium if tests require it, and it is missing and permitted. It takes 300 MB.
func (b *Builder) ProvideBrowser(ctx context.Context) error {
	if !browser.Required() {
		return nil
	}
	return b.provide(ctx, "chromium", func() error {
		_, err := browser.Path()
		return err
	})
}

// provide installs a Debian package without starting its service, if it is missing and permitted; otherwise it
// returns the error of missing.
func (b *Builder) provide(ctx context.Context, name string, missing func() error) error {
	if missing() == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 {
		b.sayf("%v", missing())
		return nil
	}
	unlock, err := b.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if missing() == nil { // another process has installed it meanwhile
		return nil
	}
	b.sayf("installing a package: apt-get install %s, without starting its service", name)
	if _, err := os.Stat(servicePolicy); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(servicePolicy, []byte("#!/bin/sh\nexit 101\n"), 0o755); err != nil {
			return fmt.Errorf("cannot prevent the start of the service of %s: %w", name, err)
		}
		defer os.Remove(servicePolicy)
	}
	apt := func(args ...string) error {
		_, err := run(ctx, b.root, "env",
			append([]string{"DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "-o", "DPkg::Lock::Timeout=600"}, args...)...)
		return err
	}
	install := []string{"install", "--no-install-recommends", name}
	if apt(install...) == nil {
		return nil
	}
	// The package lists may be missing or old. An update may fail because of an unneeded list.
	updateErr := apt("update")
	if err := apt(install...); err != nil {
		return fmt.Errorf("cannot install %s: %w", name, errors.Join(updateErr, err))
	}
	return nil
}
