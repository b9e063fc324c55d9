package provider

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/version"
	"github.com/spf13/pflag"
)

// builtAs sets the variables that the linker sets for a release.
func builtAs(t *testing.T, release, revision string) {
	t.Helper()
	oldVersion, oldRevision := version.Version, version.Revision
	t.Cleanup(func() { version.Version, version.Revision = oldVersion, oldRevision })
	version.Version, version.Revision = release, revision
}

// parse parses flags of a manager and returns the output.
func parse(args ...string) (string, error) {
	var out bytes.Buffer
	o, fs := &Options{}, pflag.NewFlagSet("manager", pflag.ContinueOnError)
	fs.SetOutput(&out)
	o.AddFlags(fs)
	err := o.Parse(fs, args, &out)
	return out.String(), err
}

func TestVersionIsPrinted(t *testing.T) {
	g := NewWithT(t)
	builtAs(t, "v1.2.3", "0123abc")
	out, err := parse("--version", "--concurrency=0")
	g.Expect(err).To(MatchError(ErrPrinted))
	g.Expect(out).To(Equal("manager v1.2.3 (revision 0123abc, " + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")\n"))
}

func TestDevelopmentBuildHasAVersion(t *testing.T) {
	g := NewWithT(t)
	builtAs(t, "", "")
	g.Expect(releaseVersion()).NotTo(BeEmpty())
	g.Expect(buildInfoOf(t)).To(HaveKeyWithValue("version", releaseVersion()))
}

// buildInfoOf returns the labels of the metric.
func buildInfoOf(t *testing.T) map[string]string {
	t.Helper()
	g := NewWithT(t)
	registry := prometheus.NewRegistry()
	g.Expect(registerBuildInfo(registry)).To(Succeed())
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(families).To(HaveLen(1))
	g.Expect(families[0].GetName()).To(Equal("openshift_agent_build_info"))
	labels := map[string]string{}
	for _, label := range families[0].GetMetric()[0].GetLabel() {
		labels[label.GetName()] = label.GetValue()
	}
	return labels
}

func TestFlagsAreReadAndChecked(t *testing.T) {
	g := NewWithT(t)
	out, err := parse("--help")
	g.Expect(err).To(MatchError(ErrPrinted))
	g.Expect(out).To(ContainSubstring("--watch-filter"))
	_, err = parse("--concurrency=0")
	g.Expect(err).To(MatchError(ContainSubstring("--concurrency must be at least 1")))
	_, err = parse("--unheard-of")
	g.Expect(err).To(MatchError(ContainSubstring("unknown flag")))
	g.Expect(errors.Is(err, ErrPrinted)).To(BeFalse())
}

func TestBuildInfoIsAMetric(t *testing.T) {
	g := NewWithT(t)
	builtAs(t, "v1.2.3", "0123abc")
	labels := buildInfoOf(t)
	g.Expect(labels).To(HaveKeyWithValue("version", "v1.2.3"))
	g.Expect(labels).To(HaveKeyWithValue("revision", "0123abc"))
}
