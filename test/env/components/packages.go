package components

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// servicePolicy is the program that Debian's packages ask whether they may start their services.
const servicePolicy = "/usr/sbin/policy-rc.d"

// Promtool returns the path of Prometheus' program that tests alerts.
func Promtool() (string, error) {
	program, err := exec.LookPath("promtool")
	if err != nil {
		return "", errors.New("the tests of the alerts need promtool, which is not installed here: install the package prometheus (Debian, Ubuntu) or golang-github-prometheus (Fedora); its service need not run")
	}
	return program, nil
}

// ProvidePrometheus installs Prometheus where promtool is missing and we may; else it tells what to do.
func (b *Builder) ProvidePrometheus(ctx context.Context) error {
	_, missing := Promtool()
	return b.provide(ctx, "prometheus", missing)
}

// provide installs a package of Debian without starting its service, where something is missing and we may; else it tells what is.
func (b *Builder) provide(ctx context.Context, name string, missing error) error {
	if missing == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 {
		b.sayf("%v", missing)
		return nil
	}
	b.sayf("installing a package: apt-get install %s, without starting its service", name)
	if _, err := os.Stat(servicePolicy); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(servicePolicy, []byte("#!/bin/sh\nexit 101\n"), 0o755); err != nil {
			return fmt.Errorf("cannot keep the service of %s from starting: %w", name, err)
		}
		defer os.Remove(servicePolicy)
	}
	apt := func(args ...string) error {
		_, err := run(ctx, b.root, "env", append([]string{"DEBIAN_FRONTEND=noninteractive", "apt-get", "-y"}, args...)...)
		return err
	}
	install := []string{"install", "--no-install-recommends", name}
	if apt(install...) == nil {
		return nil
	}
	// The package lists may be missing or old. An update may fail for a list that is not needed.
	updateErr := apt("update")
	if err := apt(install...); err != nil {
		return fmt.Errorf("cannot install %s: %w", name, errors.Join(updateErr, err))
	}
	return nil
}
