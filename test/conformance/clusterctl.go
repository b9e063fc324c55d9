package conformance

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"
)

const (
	// elsewhereNamespace is the target namespace of the providers for clusterctl.
	elsewhereNamespace = "elsewhere"
	clusterctlLabel    = "clusterctl." + capiGroup
)

// typeNames are the types of providers in the configuration of clusterctl.
var typeNames = map[string]string{"bootstrap": "BootstrapProvider", "control-plane": "ControlPlaneProvider"}

// clusterctlRules run clusterctl itself on a release.
func (s *suite) clusterctlRules() {
	var repository, config string
	rendered := map[string][]*object{}

	s.before(func(ctx SpecContext) {
		var err error
		repository, err = os.MkdirTemp("", "conformance-")
		Expect(err).NotTo(HaveOccurred())
		config = s.writeRepository(ctx, repository)
		for name, component := range s.components() {
			out, err := s.clusterctl(ctx, nil, "generate", "provider", "--"+name, component.Name+":"+s.version(),
				"--target-namespace", elsewhereNamespace, "--config", config)
			Expect(err).NotTo(HaveOccurred())
			rendered[name], err = decode(out)
			Expect(err).NotTo(HaveOccurred())
		}
	}, soon)
	s.after(func() { Expect(os.RemoveAll(repository)).To(Succeed()) })

	s.rule("C1", "provider repository", must, func() {
		for name := range s.components() {
			Expect(rendered[name]).NotTo(BeEmpty(), "the objects that clusterctl reads from the repository of %s", name)
		}
	})
	s.rule("C2", "a release of both providers", must, func() {
		_, err := semver.Parse(strings.TrimPrefix(s.version(), "v"))
		Expect(err).NotTo(HaveOccurred(), "the tag")
		Expect(s.version()).To(HavePrefix("v"))
		var folders []string
		for name, component := range s.components() {
			folders = append(folders, filepath.Join(repository, name+"-"+component.Name, s.version()))
		}
		expectOneRelease(folders)
	})
	s.rule("C6", "file names", should, func() {
		for name, component := range s.components() {
			expectFileNames(filepath.Join(repository, name+"-"+component.Name, s.version()), name)
		}
	})
	s.rule("C24", "components are transformed", info, func(ctx SpecContext) {
		s.createNamespace(ctx, elsewhereNamespace)
		for name := range s.components() {
			expectTransformed(rendered[name])
			for _, o := range rendered[name] {
				Expect(s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("clusterctl"),
					client.ForceOwnership, client.DryRunAll)).
					To(Succeed(), title(o))
			}
		}
	}, NodeTimeout(soon))
	s.rule("C15", "cluster templates", should, func(ctx SpecContext) {
		s.createNamespace(ctx, elsewhereNamespace)
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.Templates)), isClass)
		Expect(names).To(ContainElement("cluster-template.yaml"))
		for _, name := range names {
			s.expectTemplate(ctx, config, name)
		}
		s.addNote("%d templates", len(names))
	}, NodeTimeout(2*soon))
	s.rule("C16", "ClusterClass files", should, func() {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.Templates)), func(name string) bool { return !isClass(name) })
		Expect(names).NotTo(BeEmpty())
		for _, name := range names {
			Expect(string(s.Templates[name])).NotTo(ContainSubstring("${"), name)
			objects, err := decode(s.Templates[name])
			Expect(err).NotTo(HaveOccurred())
			Expect(ofKind(objects, "ClusterClass")).To(HaveLen(1), name)
			for _, o := range objects {
				Expect(o.GetNamespace()).To(BeEmpty(), title(o))
			}
		}
	})
}

// expectTransformed expects the objects that clusterctl renders from a release to have its label and the target
// namespace.
func expectTransformed(objects []*object) {
	GinkgoHelper()
	for _, o := range objects {
		Expect(o.GetLabels()).To(HaveKey(clusterctlLabel), title(o))
		Expect(o.GetNamespace()).To(BeElementOf("", elsewhereNamespace), title(o))
	}
}

// clusterctlReads matches the names of the files that clusterctl downloads from a release.
var clusterctlReads = regexp.MustCompile(`^(metadata|.+-components|cluster-template.*|clusterclass-.+)\.yaml$`)

// expectOneRelease expects that the folders of providers fit in one folder, as the files of a release on GitHub
// do. Files of the same name that clusterctl reads have to be equal.
func expectOneRelease(folders []string) {
	GinkgoHelper()
	together := map[string][]byte{}
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		Expect(err).NotTo(HaveOccurred())
		for _, entry := range entries {
			if !clusterctlReads.MatchString(entry.Name()) {
				continue
			}
			content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
			Expect(err).NotTo(HaveOccurred())
			if other, found := together[entry.Name()]; found {
				Expect(content).To(Equal(other), "%s of both providers", entry.Name())
			}
			together[entry.Name()] = content
		}
	}
}

// expectFileNames expects the files of a provider under the default names of clusterctl.
func expectFileNames(folder, name string) {
	GinkgoHelper()
	Expect(filepath.Join(folder, name+"-components.yaml")).To(BeARegularFile())
	Expect(filepath.Join(folder, "metadata.yaml")).To(BeARegularFile())
}

func isClass(name string) bool { return strings.HasPrefix(name, "clusterclass-") }

// version returns the first release of the newest series.
func (s *suite) version() string {
	GinkgoHelper()
	series := s.metadata().ReleaseSeries
	newest := series[len(series)-1]
	return fmt.Sprintf("v%d.%d.0", newest.Major, newest.Minor)
}

// writeRepository creates a release as a local repository of clusterctl, and returns the path of the
// configuration that names it.
func (s *suite) writeRepository(ctx context.Context, dir string) string {
	GinkgoHelper()
	Expect(s.Release(ctx, s.version(), dir)).To(Succeed())
	var providers []map[string]string
	for name, component := range s.components() {
		file := filepath.Join(dir, name+"-"+component.Name, s.version(), name+"-components.yaml")
		providers = append(providers, map[string]string{"name": component.Name, "type": typeNames[name], "url": file})
	}
	for name, content := range s.Templates {
		Expect(os.WriteFile(filepath.Join(dir, name), content, 0o600)).To(Succeed())
	}
	content, err := sigsyaml.Marshal(map[string]any{"providers": providers})
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(dir, "clusterctl.yaml")
	Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	return path
}

// expectTemplate expects that clusterctl renders objects from a template that the API server accepts.
func (s *suite) expectTemplate(ctx context.Context, config, name string) {
	GinkgoHelper()
	path := filepath.Join(filepath.Dir(config), name)
	out, err := s.clusterctl(ctx, s.Variables, "generate", "cluster", "generated", "--from", path, "--config", config,
		"--kubeconfig", s.hub.Kubeconfig(), "--target-namespace", elsewhereNamespace, "--control-plane-machine-count", "3",
		"--worker-machine-count", "2")
	Expect(err).NotTo(HaveOccurred(), name)
	objects, err := decode(out)
	Expect(err).NotTo(HaveOccurred(), name)
	Expect(ofKind(objects, "Namespace")).To(BeEmpty(), name)
	for _, o := range objects {
		Expect(o.GetNamespace()).To(Equal(elsewhereNamespace), title(o))
		apply := client.ApplyConfigurationFromUnstructured(o)
		Expect(s.client.Apply(ctx, apply, client.FieldOwner("conformance"), client.DryRunAll)).To(Succeed(), "%s: %s", name, title(o))
	}
}

// clusterctl runs clusterctl without a network.
func (s *suite) clusterctl(ctx context.Context, variables map[string]string, args ...string) ([]byte, error) {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, s.Clusterctl, args...)
	cmd.Env = append(os.Environ(), "CLUSTERCTL_DISABLE_VERSIONCHECK=true", "GOPROXY=off", "XDG_CONFIG_HOME="+GinkgoT().TempDir())
	for name, value := range variables {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	GinkgoWriter.Printf("clusterctl %s\n%s\n", strings.Join(args, " "), stderr.String())
	if err != nil {
		return out, fmt.Errorf("clusterctl %s: %w: %s", args[0], err, stderr.String())
	}
	return out, nil
}
