package provider

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/common/version"
)

// buildInfoPrefix is the prefix of the metric openshift_agent_build_info of both managers. Their series
// differ by the labels of the scraped target.
const buildInfoPrefix = "openshift_agent"

// releaseVersion returns the version that the linker set, or else the version that Go recorded of the
// checkout.
func releaseVersion() string {
	if version.Version != "" {
		return version.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// printVersion prints the version and the build of a manager.
func printVersion(out io.Writer, name string) error {
	_, err := fmt.Fprintf(
		out,
		"%s %s (revision %s, %s, %s/%s)\n",
		name,
		releaseVersion(),
		version.GetRevision(),
		version.GoVersion,
		version.GoOS,
		version.GoArch,
	)
	return err
}

// registerBuildInfo registers the metric with the version and the build.
func registerBuildInfo(registry prometheus.Registerer) error {
	version.Version = releaseVersion()
	if err := registry.Register(versioncollector.NewCollector(buildInfoPrefix)); err != nil {
		return fmt.Errorf("cannot add the metric with the version: %w", err)
	}
	return nil
}
