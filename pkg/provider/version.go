package provider

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/common/version"
)

// buildInfoPrefix begins the name of the metric openshift_agent_build_info, which both managers have: what differs
// between them are the labels of the scraped target.
const buildInfoPrefix = "openshift_agent"

// releaseVersion is the version that the linker was told, or else what Go recorded of the checkout.
func releaseVersion() string {
	if version.Version != "" {
		return version.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// printVersion writes what a manager was built from.
func printVersion(out io.Writer, name string) error {
	_, err := fmt.Fprintf(out, "%s %s (revision %s, %s, %s/%s)\n", name, releaseVersion(), version.GetRevision(), version.GoVersion, version.GoOS, version.GoArch)
	return err
}

// registerBuildInfo adds the metric that tells the same.
func registerBuildInfo(registry prometheus.Registerer) error {
	version.Version = releaseVersion()
	if err := registry.Register(versioncollector.NewCollector(buildInfoPrefix)); err != nil {
		return fmt.Errorf("cannot add the metric with the version: %w", err)
	}
	return nil
}
