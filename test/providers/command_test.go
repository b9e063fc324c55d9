package providers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/conformance"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/docs"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
)

// commandVersion is the version of the release of our providers in the tests of the command.
const commandVersion = "v0.1.0"

// The command reports no failure for our manifests, and each failure for broken ones. It also tests the providers of
// another project: those that docs/conformance-of-other-providers.md describes.
func TestCommandChecksManifests(t *testing.T) {
	t.Parallel()
	g, dir := NewWithT(t), t.TempDir()
	builder, err := components.NewBuilder(root, os.Stdout)
	g.Expect(err).NotTo(HaveOccurred())
	for _, c := range []components.Component{components.Etcd, components.APIServer} {
		program, err := builder.Program(t.Context(), c)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.Symlink(program, filepath.Join(dir, filepath.Base(program)))).To(Succeed())
	}
	clusterctl, err := builder.Program(t.Context(), components.Clusterctl)
	g.Expect(err).NotTo(HaveOccurred())
	core, err := builder.Release(t.Context(), components.Core(""))
	g.Expect(err).NotTo(HaveOccurred())
	metal3, err := builder.Manifests(t.Context(), components.Metal3)
	g.Expect(err).NotTo(HaveOccurred())
	write(t, filepath.Join(dir, "core-components.yaml"), slices.Concat(core.Components, []byte("---\n"), metal3))
	test := func(t *testing.T, provider string, args ...string) (failed []string, passed int) {
		t.Helper()
		return conformanceCommand(t, dir, append(args, "-provider="+provider, "-core="+filepath.Join(dir, "core-components.yaml"),
			"-clusterctl="+clusterctl)...)
	}

	t.Run("our providers", func(t *testing.T) {
		provider := describeOurs(t, t.TempDir())
		failed, passed := test(t, provider)
		NewWithT(t).Expect(failed).To(BeEmpty())
		NewWithT(t).Expect(passed).To(BeNumerically(">", 30))

		breakRelease(t, filepath.Dir(provider))
		failed, passed = test(t, provider, "-focus=B[58] ")
		NewWithT(t).Expect(failed).To(ConsistOf("B5"))
		NewWithT(t).Expect(passed).To(Equal(1))
	})
	t.Run("providers of another project", func(t *testing.T) {
		g, dir := NewWithT(t), t.TempDir()
		document := documented(t, "kind: KubeadmControlPlane")
		write(t, filepath.Join(dir, "kubeadm.yaml"), []byte(document))
		for file, folder := range map[string]string{
			"bootstrap-components.yaml": "bootstrap/kubeadm/config/default", "control-plane-components.yaml": "controlplane/kubeadm/config/default",
		} {
			manifests, err := builder.KustomizeModule(t.Context(), components.DefaultCoreTools, "sigs.k8s.io/cluster-api", folder)
			g.Expect(err).NotTo(HaveOccurred())
			write(t, filepath.Join(dir, "kubeadm", file), manifests)
		}
		write(t, filepath.Join(dir, "kubeadm", "metadata.yaml"), core.Metadata)
		failed, passed := test(t, filepath.Join(dir, "kubeadm.yaml"), "-focus=(B|P)[0-9]+ ")
		g.Expect(failed).To(ConsistOf("B8", "B18", "P4", "P21"), "short names and terminal failures, as documented")
		g.Expect(passed).To(BeNumerically(">", 10))
	})
}

// The command tests providers that run on a hub. Its clusters have no hosts: rules on objects that wait suffice.
func TestCommandChecksRunningProviders(t *testing.T) {
	t.Parallel()
	if os.Getenv(longVariable) == "" {
		t.Skip("runs in make nightly only, because of its duration")
	}
	g, dir := NewWithT(t), t.TempDir()
	e, err := env.Start(t.Context(), env.Options{
		Dir: artifacts("../conformance-command"), Out: os.Stdout, CoreTools: os.Getenv(coreVariable), Core: withTaints,
	})
	g.Expect(err).NotTo(HaveOccurred())
	defer e.Stop()
	provider := describeOurs(t, dir)
	failed, passed := conformanceCommand(t, dir, "-provider="+provider, "-kubeconfig="+e.Kubeconfig(), "-focus=(P6|B26|I2|I6) ")
	g.Expect(failed).To(BeEmpty())
	g.Expect(passed).To(Equal(3), "I6 does not apply without the logs of the managers")
	e.Manager(env.Bootstrap).Stop()
	failed, _ = conformanceCommand(t, dir, "-provider="+provider, "-kubeconfig="+e.Kubeconfig(), "-focus=B26 ")
	g.Expect(failed).To(ConsistOf("B26"), "without the bootstrap provider no config reports its dependency")
}

// conformanceCommand runs the command as the document describes. It returns the rules that failed, and the number of
// those that passed.
func conformanceCommand(t *testing.T, dir string, args ...string) (failed []string, passed int) {
	t.Helper()
	g, report := NewWithT(t), filepath.Join(t.TempDir(), "conformance.md")
	cmd := exec.CommandContext(t.Context(), "go",
		append([]string{"-C", "test/conformance", "run", "./cmd/conformance", "-report=" + report}, args...)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "KUBEBUILDER_ASSETS="+dir)
	out, runErr := cmd.CombinedOutput()
	table, err := os.ReadFile(report)
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	t.Log(string(table))
	for _, row := range resultRow.FindAllStringSubmatch(string(table), -1) {
		switch row[2] {
		case "fail":
			failed = append(failed, row[1])
		case "pass":
			passed++
		}
	}
	if len(failed) == 0 {
		g.Expect(runErr).NotTo(HaveOccurred(), string(out))
	} else {
		g.Expect(runErr).To(MatchError("exit status 1"), string(out))
	}
	return failed, passed
}

// resultRow matches a row in the table of rules.
var resultRow = regexp.MustCompile(`(?m)^\| ([A-Z]\d+) [^|]*\| [^|]* \| ([a-z/ ]+) \|`)

// describeOurs writes a description of our providers, with a release. It returns the path of the description.
func describeOurs(t *testing.T, dir string) string {
	t.Helper()
	g := NewWithT(t)
	g.Expect(release(t.Context(), commandVersion, filepath.Join(dir, "out"))).To(Succeed())
	wanted := ours("", semver.Version{})
	describe := func(name string, c conformance.Component) map[string]any {
		folder := filepath.Join("out", name+"-"+c.Name, commandVersion)
		return map[string]any{"name": c.Name, "kind": c.Kind, "change": c.Change, "release": folder}
	}
	description, err := yaml.Marshal(map[string]any{
		"bootstrap": describe("bootstrap", wanted.Bootstrap), "controlPlane": describe("control-plane", wanted.ControlPlane),
		"samples": map[string]string{"small": "sno.yaml", "full": "ha.yaml"}, "installed": wanted.Installed,
		"variables": wanted.Variables, "exempt": wanted.Exempt,
	})
	g.Expect(err).NotTo(HaveOccurred())
	write(t, filepath.Join(dir, "providers.yaml"), description)
	// With a release by digest, the control plane provider queries no registry.
	const config, releaseImage = "\n  config:\n", "    releaseImage: registry.example.com/release@sha256:"
	for _, sample := range []string{"sno.yaml", "ha.yaml"} {
		content := string(read(filepath.Join("config", "samples", sample)))
		g.Expect(content).To(ContainSubstring(config))
		write(t, filepath.Join(dir, sample), []byte(strings.Replace(content, config, config+releaseImage+strings.Repeat("0", 64)+"\n", 1)))
	}
	return filepath.Join(dir, "providers.yaml")
}

// breakRelease names another version for the contract in the CRDs of the bootstrap provider.
func breakRelease(t *testing.T, dir string) {
	t.Helper()
	g, file := NewWithT(t), filepath.Join(dir, "out", "bootstrap-openshift-agent", commandVersion, "bootstrap-components.yaml")
	content, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	broken := strings.ReplaceAll(string(content), "cluster.x-k8s.io/v1beta2: v1beta1", "cluster.x-k8s.io/v1beta2: v1")
	g.Expect(broken).NotTo(Equal(string(content)))
	write(t, file, []byte(broken))
}

// documented returns the block of YAML with a text in the document of the command.
func documented(t *testing.T, text string) string {
	t.Helper()
	documents, err := docs.Read(root)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, d := range documents {
		if d.Path != "docs/conformance-of-other-providers.md" {
			continue
		}
		for _, block := range d.Blocks("yaml") {
			if strings.Contains(block.Text, text) {
				return block.Text
			}
		}
	}
	t.Fatalf("no document has a block of YAML with %q", text)
	return ""
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	NewWithT(t).Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	NewWithT(t).Expect(os.WriteFile(path, content, 0o644)).To(Succeed())
}
