package providers_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/conformance"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/docs"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// commandVersion is the version of the release of our providers in the tests of the command.
const commandVersion = "v0.1.0"

// The command reports no failure for our manifests, and each failure for broken ones. It also tests the providers of
// another project: those that docs/conformance-of-other-providers.md describes.
func TestCommandChecksManifests(t *testing.T) {
	t.Parallel()
	if core := os.Getenv(coreVariable); core != "" {
		t.Skipf("tests the manifests with the pinned Cluster API only: %s=%s", coreVariable, core)
	}
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
		g.Expect(failed).To(ConsistOf("B18", "P21"), "terminal failures, as documented")
		g.Expect(passed).To(BeNumerically(">", 10))
	})
}

// The command tests our managers in a laboratory, which prepares hosts for the clusters of the command.
func TestCommandChecksRunningProviders(t *testing.T) {
	t.Parallel()
	if os.Getenv(longVariable) == "" {
		t.Skip("runs in make nightly only, because of its duration")
	}
	g, dir := NewWithT(t), t.TempDir()
	l, err := lab.New(t.Context(), lab.Options{
		Dir: artifacts("../conformance-command"), Out: os.Stdout, HostJitter: hostJitter, Drain: drain,
		CoreTools: os.Getenv(coreVariable), Core: withTaints,
	})
	g.Expect(err).NotTo(HaveOccurred())
	defer l.Stop()
	for _, sample := range []conformance.Sample{conformance.Small, conformance.Full} {
		prepareSample(t, l, sample, filepath.Join(dir, string(sample)+".yaml"))
	}
	provider := describeOurs(t, dir)
	failed, passed := conformanceCommand(t, dir, "-provider="+provider, "-kubeconfig="+l.Env.Kubeconfig())
	g.Expect(failed).To(BeEmpty())
	g.Expect(passed).To(BeNumerically(">", 60))

	l.Env.Manager(env.Bootstrap).Stop()
	failed, _ = conformanceCommand(t, dir, "-provider="+provider, "-kubeconfig="+l.Env.Kubeconfig(), "-focus=B26 ")
	g.Expect(failed).To(ConsistOf("B26"), "without the bootstrap provider no config reports its dependency")
}

// prepareSample prepares the hosts and the API server of a sample, and writes its objects to a file. The suite installs
// each sample in the namespace with the name of the sample.
func prepareSample(t *testing.T, l *lab.Lab, sample conformance.Sample, path string) {
	t.Helper()
	var objects []byte
	mutations := lab.Mutations{
		Namespace: string(sample), EtcdMembers: sample == conformance.Full,
		Without: func(o *unstructured.Unstructured) bool {
			content, err := yaml.Marshal(o.Object)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			objects = append(append(objects, "---\n"...), content...)
			return true
		},
	}
	if sample == conformance.Full {
		mutations.ExtraHosts = 1
	}
	_, err := l.ApplySample(t.Context(), samples[sample], mutations)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	write(t, path, objects)
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
	wanted := ours("")
	describe := func(name string, c conformance.Component) map[string]any {
		folder := filepath.Join("out", name+"-"+c.Name, commandVersion)
		return map[string]any{"name": c.Name, "kind": c.Kind, "change": c.Change, "release": folder}
	}
	exempt := maps.Clone(wanted.Exempt)
	exempt["I4"] = "the tests of the command prepare no hosts for this cluster"
	description, err := yaml.Marshal(map[string]any{
		"bootstrap": describe("bootstrap", wanted.Bootstrap), "controlPlane": describe("control-plane", wanted.ControlPlane),
		"samples": map[string]string{"small": "small.yaml", "full": "full.yaml"}, "installed": wanted.Installed,
		"infraMachine": wanted.InfraMachine, "kinds": wanted.Kinds, "registration": wanted.Registration,
		"taintsTaken": wanted.TaintsTaken, "variables": wanted.Variables, "exempt": exempt,
	})
	g.Expect(err).NotTo(HaveOccurred())
	write(t, filepath.Join(dir, "providers.yaml"), description)
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
