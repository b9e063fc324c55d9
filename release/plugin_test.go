package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// extract writes the files of an archive to a new folder and returns the folder.
func extract(t *testing.T, archive []byte) string {
	t.Helper()
	g, folder := NewWithT(t), t.TempDir()
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	g.Expect(err).NotTo(HaveOccurred())
	for files := tar.NewReader(compressed); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return folder
		}
		g.Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(files)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(filepath.Join(folder, header.Name), content, header.FileInfo().Mode())).To(Succeed())
	}
}

// complete runs the program for the completion in a folder with the plugin. kubectl runs a plugin by its name in the
// PATH, with the other arguments.
func complete(t *testing.T, folder string) string {
	t.Helper()
	g := NewWithT(t)
	kubectl := "#!/bin/sh\nshift\nexec kubectl-openshift_agent \"$@\"\n"
	g.Expect(os.WriteFile(filepath.Join(folder, "kubectl"), []byte(kubectl), 0o700)).To(Succeed())
	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "kubectl_complete-openshift_agent"), "wait", "ha", "--for", "")
	cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
	completed, err := cmd.Output()
	g.Expect(err).NotTo(HaveOccurred())
	return string(completed)
}

// A script plays the plugin: it prints its arguments.
func TestArchiveOfThePlugin(t *testing.T) {
	g := NewWithT(t)
	packed, err := (&release{root: root}).packPlugin(platform{"linux", "amd64"}, []byte("#!/bin/sh\nprintf '[%s]' \"$@\"\n"))
	g.Expect(err).NotTo(HaveOccurred())
	folder := extract(t, packed)
	g.Expect(slices.Collect(maps.Keys(contents(t, folder)))).To(ConsistOf(
		"kubectl-openshift_agent", "kubectl_complete-openshift_agent", "LICENSE"))
	g.Expect(complete(t, folder)).To(Equal("[__complete][wait][ha][--for][]"))
}

func TestManifestForKrew(t *testing.T) {
	g := NewWithT(t)
	archives := map[string][]byte{}
	for _, p := range pluginPlatforms {
		archives[p.archive("v0.1.0")] = []byte(p.os + p.arch)
	}
	content, err := krewManifest("v0.1.0", pluginPlatforms, archives)
	g.Expect(err).NotTo(HaveOccurred())
	manifest := struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version, ShortDescription string
			Platforms                 []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, Sha256, Bin string
			}
		}
	}{}
	g.Expect(yaml.Unmarshal(content, &manifest)).To(Succeed())
	g.Expect(manifest.Metadata.Name).To(Equal("openshift-agent"), "krew derives the name of the command from it")
	g.Expect(manifest.Spec.Version).To(Equal("v0.1.0"))
	g.Expect(len(manifest.Spec.ShortDescription)).To(BeNumerically("<=", 50), "the limit of krew's index")
	g.Expect(manifest.Spec.Platforms).To(HaveLen(6))
	for _, p := range manifest.Spec.Platforms {
		system, arch := p.Selector.MatchLabels["os"], p.Selector.MatchLabels["arch"]
		g.Expect(p.URI).To(HaveSuffix("/releases/download/v0.1.0/kubectl-openshift_agent_v0.1.0_" + system + "_" + arch + ".tar.gz"))
		g.Expect(p.Sha256).To(Equal(fmt.Sprintf("%x", sha256.Sum256([]byte(system+arch)))))
		program := map[bool]string{true: "kubectl-openshift_agent.exe", false: "kubectl-openshift_agent"}[system == "windows"]
		g.Expect(p.Bin).To(Equal(program))
	}
}

// command matches a command of the plugin in its sources.
var command = regexp.MustCompile(`(?m)^\s*Use: +"([a-z]+)[ "]`)

func TestDescriptionForKrewNamesEachCommand(t *testing.T) {
	g, found := NewWithT(t), 0
	sources, err := filepath.Glob(filepath.Join(root, "cmd", pluginProgram, "*.go"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, source := range sources {
		content, err := os.ReadFile(source)
		g.Expect(err).NotTo(HaveOccurred())
		for _, match := range command.FindAllSubmatch(content, -1) {
			found++
			g.Expect(pluginDescription).To(ContainSubstring(string(match[1])))
		}
	}
	g.Expect(found).To(BeNumerically(">=", 6))
}

// documentedBlock returns the commands of a document that tests run by a name, see test/docs/commands.
func documentedBlock(t *testing.T, document, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, document))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	match := regexp.MustCompile("(?s)<!-- run as " + name + " by [^\n]*\n```console\n(.*?)```").FindSubmatch(content)
	NewWithT(t).Expect(match).NotTo(BeNil(), "%s has a block that is run as %s", document, name)
	return string(match[1])
}

// Scripts play the plugin, kubectl and curl. kubectl runs a plugin by its name in the PATH. curl prints a file whose path
// is the requested address.
func TestPluginIsInstalledAsDocumented(t *testing.T) {
	const version = "v0.1.0"
	g, programs, home := NewWithT(t), t.TempDir(), t.TempDir()
	p := platform{"linux", "amd64"}
	packed, err := (&release{root: root}).packPlugin(p, []byte("#!/bin/sh\necho plugin \"$@\"\n"))
	g.Expect(err).NotTo(HaveOccurred())
	address := strings.TrimPrefix(downloads, "https://") + version + "/" + p.archive(version)
	g.Expect(os.MkdirAll(filepath.Join(programs, filepath.Dir(address)), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(programs, address), packed, 0o600)).To(Succeed())
	for name, script := range map[string]string{
		"curl":    `for last; do :; done; cat "` + programs + `/${last#https://}"`,
		"kubectl": `plugin=$1; shift; exec "kubectl-$(echo "$plugin" | tr - _)" "$@"`,
	} {
		g.Expect(os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700)).To(Succeed())
	}
	commands := documentedBlock(t, "docs/operations/kubectl-plugin.md", "plugin")
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", commands)
	cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "HOME="+home)
	out, err := cmd.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	g.Expect(string(out)).To(Equal("plugin --version\n"))
	g.Expect(complete(t, filepath.Join(home, ".local", "bin"))).To(Equal("plugin __complete wait ha --for \n"))
}

// This test builds the plugin for six platforms. It takes some minutes, and only make nightly runs it.
func TestReleaseContainsThePlugin(t *testing.T) {
	if os.Getenv("REPRODUCE") == "" {
		t.Skip("builds the plugin for all platforms: only with REPRODUCE=1")
	}
	out := filepath.Join(t.TempDir(), "out")
	write := func(ctx context.Context) map[string]string {
		args := []string{"-root", root, "-out", out, "-version", "v0.1.0", "-registry", "registry.example.com/team", "-plugin"}
		NewWithT(t).Expect(run(ctx, args, t.Output())).To(Succeed())
		return contents(t, out)
	}
	g, files := NewWithT(t), write(t.Context())
	for _, p := range pluginPlatforms {
		g.Expect(files).To(HaveKey(p.archive("v0.1.0")))
		g.Expect(files[checksums]).To(ContainSubstring("  " + p.archive("v0.1.0") + "\n"))
	}
	g.Expect(files).To(HaveKey(krewFile))
	here := extract(t, []byte(files[platform{runtime.GOOS, runtime.GOARCH}.archive("v0.1.0")]))
	shown, err := exec.CommandContext(t.Context(), filepath.Join(here, "kubectl-openshift_agent"), "--version").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(shown)).To(Equal("kubectl openshift-agent version v0.1.0\n"))
	g.Expect(complete(t, here)).To(HavePrefix("installed\nupgraded\ndeleted\n"))
	g.Expect(write(t.Context())).To(Equal(files), "the second release replaces the first one, with equal bytes")
}
