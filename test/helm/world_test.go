package helm

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cluster-api/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
)

const (
	version  = "v0.1.0"
	registry = "registry.example.com/openshift-agent"
	// namespace is where the chart is installed.
	namespace = "hub"
)

// world is a user with Helm and a release.
type world struct {
	*testing.T
	builder *components.Builder
	// program is Helm, release the folder of the release, chart the package in it.
	program, release, chart string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	g := NewWithT(t)
	builder, err := components.NewBuilder(".", io.Discard)
	g.Expect(err).NotTo(HaveOccurred())
	program, err := builder.Program(t.Context(), components.Helm)
	g.Expect(err).NotTo(HaveOccurred())
	w := &world{T: t, builder: builder, program: program}
	w.release, w.chart = w.publish(version)
	return w
}

// publish writes a release as its maintainers do.
func (w *world) publish(version string) (release, chart string) {
	w.Helper()
	release = filepath.Join(w.TempDir(), "out")
	cmd := exec.CommandContext(w.Context(), "make", "release", "VERSION="+version, "REGISTRY="+registry, "PLUGINS=false", "OUT="+release)
	cmd.Dir = w.builder.Root()
	written, err := cmd.CombinedOutput()
	NewWithT(w).Expect(err).NotTo(HaveOccurred(), string(written))
	return release, filepath.Join(release, "cluster-api-provider-openshift-agent-"+strings.TrimPrefix(version, "v")+".tgz")
}

// helm runs Helm as a user without settings of their own, and returns what it prints.
func (w *world) helm(args ...string) (string, error) {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), w.program, args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+w.TempDir(), "HELM_CONFIG_HOME="+w.TempDir(), "HELM_DATA_HOME="+w.TempDir())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	w.Logf("helm %s\n%s", strings.Join(args, " "), stderr.String())
	return stdout.String() + stderr.String(), err
}

// template are the objects that the chart gives with values.
func (w *world) template(values map[string]any, more ...string) []unstructured.Unstructured {
	w.Helper()
	out, err := w.helm(append([]string{
		"template", "openshift-agent", w.chart, "--namespace", namespace, "--kube-version",
		"1.31.0", "--values", w.file(values),
	}, more...)...)
	g := NewWithT(w)
	g.Expect(err).NotTo(HaveOccurred(), out)
	objects, err := yaml.ToUnstructured([]byte(out))
	g.Expect(err).NotTo(HaveOccurred())
	return objects
}

// file is a file with values.
func (w *world) file(values map[string]any) string {
	w.Helper()
	content, err := sigsyaml.Marshal(values)
	g := NewWithT(w)
	g.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(w.TempDir(), "values.yaml")
	g.Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	return path
}

// at is a tree of values with one in it, whose path is written with dots.
func at(path string, value any) map[string]any {
	keys := strings.Split(path, ".")
	for i := len(keys) - 1; i >= 0; i-- {
		value = map[string]any{keys[i]: value}
	}
	return value.(map[string]any)
}
