package main

import (
	"bytes"
	"encoding/hex"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/release/chart"
)

const root = ".."

// writeRelease writes a release to a new folder and returns the folder.
func writeRelease(t *testing.T, version, registry string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	NewWithT(t).Expect(run(t.Context(), []string{"-root", root, "-out", out, "-version", version, "-registry", registry},
		t.Output())).To(Succeed())
	return out
}

// contents returns the files of a folder, by path.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, path))
		files[path] = string(content)
		return err
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return files
}

func TestRelease(t *testing.T) {
	out := writeRelease(t, "v0.1.0", "registry.example.com/team")
	files := contents(t, out)

	t.Run("has the layout of a local repository of clusterctl", func(t *testing.T) {
		NewWithT(t).Expect(slices.Collect(maps.Keys(files))).To(ConsistOf(
			"SHA256SUMS",
			"cluster-api-provider-openshift-agent-0.1.0.tgz",
			"argocd-health.yaml",
			"argocd-health-openshift-gitops.yaml",
			"egress.yaml",
			"monitoring.yaml",
			"samples.tar.gz",
			"siteconfig.yaml",
			"bootstrap-openshift-agent/v0.1.0/bootstrap-components.yaml",
			"bootstrap-openshift-agent/v0.1.0/bootstrap-components-namespaced.yaml",
			"bootstrap-openshift-agent/v0.1.0/metadata.yaml",
			"bootstrap-openshift-agent/v0.1.0/sbom.cdx.json",
			"bootstrap-openshift-agent/v0.1.0/cluster-api-operator.yaml",
			"bootstrap-openshift-agent/v0.1.0/openshift-hub.yaml",
			"bootstrap-openshift-agent/v0.1.0/openshift-hub-namespaced.yaml",
			"control-plane-openshift-agent/v0.1.0/openshift-hub.yaml",
			"control-plane-openshift-agent/v0.1.0/openshift-hub-namespaced.yaml",
			"control-plane-openshift-agent/v0.1.0/control-plane-components.yaml",
			"control-plane-openshift-agent/v0.1.0/control-plane-components-namespaced.yaml",
			"control-plane-openshift-agent/v0.1.0/metadata.yaml",
			"control-plane-openshift-agent/v0.1.0/sbom.cdx.json",
			"control-plane-openshift-agent/v0.1.0/cluster-api-operator.yaml",
			"control-plane-openshift-agent/v0.1.0/in-place-updates.yaml",
			"control-plane-openshift-agent/v0.1.0/clusterclass-agent.yaml",
			"control-plane-openshift-agent/v0.1.0/cluster-template.yaml",
			"control-plane-openshift-agent/v0.1.0/cluster-template-compact.yaml",
			"control-plane-openshift-agent/v0.1.0/cluster-template-sno.yaml",
			"control-plane-openshift-agent/v0.1.0/cluster-template-disk-image.yaml",
			"control-plane-openshift-agent/v0.1.0/cluster-template-okd.yaml",
			"control-plane-openshift-agent/v0.1.0/cluster-template-arbiter.yaml",
			"control-plane-openshift-agent/v0.1.0/cluster-template-two-node.yaml",
			"control-plane-openshift-agent/v0.1.0/cluster-template-dual-stack.yaml",
			"control-plane-openshift-agent/v0.1.0/cluster-template-disconnected.yaml",
			"control-plane-openshift-agent/v0.1.0/cluster-template-proxy.yaml",
			"control-plane-openshift-agent/v0.1.0/cluster-template-topology.yaml",
		))
	})

	t.Run("lists the values of the chart in its README", func(t *testing.T) { checkReadme(t, filepath.Join(out, chart.File("v0.1.0"))) })
	t.Run("has the manifests of the checkout", func(t *testing.T) { checkManifests(t, out) })
	t.Run("has the samples of the checkout", func(t *testing.T) { checkSamples(t, out) })

	t.Run("uses only its own images", func(t *testing.T) {
		g := NewWithT(t)
		for path, image := range map[string]string{
			"bootstrap-openshift-agent/v0.1.0/bootstrap-components":         "registry.example.com/team/agent-bootstrap-provider:v0.1.0",
			"control-plane-openshift-agent/v0.1.0/control-plane-components": "registry.example.com/team/agent-control-plane-provider:v0.1.0",
		} {
			for _, variant := range []string{"", "-namespaced"} {
				g.Expect(files[path+variant+".yaml"]).To(ContainSubstring("image: "+image+"\n"), path+variant)
				g.Expect(files[path+variant+".yaml"]).NotTo(ContainSubstring("ghcr.io"), path+variant)
			}
		}
	})

	t.Run("limits the resources of its managers", func(t *testing.T) {
		g := NewWithT(t)
		for _, p := range providers {
			for _, variant := range []string{"", "-namespaced"} {
				path := p.label + "/v0.1.0/" + p.components + variant + ".yaml"
				g.Expect(files[path]).To(MatchRegexp(`resources:\n +limits:\n +memory: 1Gi\n +requests:\n +cpu: 250m\n`), path)
				g.Expect(strings.Count(files[path], "timeoutSeconds: 5\n")).To(Equal(2), path)
				g.Expect(files[path]).NotTo(ContainSubstring("--leader-elect-"), path)
			}
		}
	})

	t.Run("uses the namespaces that its components create", func(t *testing.T) {
		for _, p := range providers {
			namespace := `kind: Namespace\nmetadata:\n( .*\n)+  name: ` + p.namespace + `\n`
			NewWithT(t).Expect(files[p.label+"/v0.1.0/"+p.components+".yaml"]).To(MatchRegexp(namespace))
		}
	})

	t.Run("has checksums of all files", func(t *testing.T) {
		g := NewWithT(t)
		check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
		check.Dir = out
		checked, err := check.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(checked))
		g.Expect(strings.Count(string(checked), ": OK\n")).To(Equal(len(files) - 1))
	})

	t.Run("has the same bytes when written again", func(t *testing.T) {
		NewWithT(t).Expect(contents(t, writeRelease(t, "v0.1.0", "registry.example.com/team"))).To(Equal(files))
	})

	t.Run("replaces the previous release", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(run(t.Context(), []string{"-root", root, "-out", out, "-version", "v0.1.1", "-registry", "registry.example.com/team"},
			t.Output())).To(Succeed())
		g.Expect(filepath.Join(out, "bootstrap-openshift-agent", "v0.1.0")).NotTo(BeADirectory())
		g.Expect(filepath.Join(out, "bootstrap-openshift-agent", "v0.1.1")).To(BeADirectory())
		left, err := filepath.Glob(filepath.Join(filepath.Dir(out), ".release-*"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(left).To(BeEmpty())
	})
}

// The expected modules are those that the go command lists for the package.
func TestBillOfMaterialsListsModulesOfManager(t *testing.T) {
	for _, p := range providers {
		t.Run(p.folder, func(t *testing.T) {
			g := NewWithT(t)
			r := &release{root: root, version: "v0.1.0"}
			content, err := r.billOfMaterials(t.Context(), p)
			g.Expect(err).NotTo(HaveOccurred())
			bom := &cdx.BOM{}
			g.Expect(cdx.NewBOMDecoder(bytes.NewReader(content), cdx.BOMFileFormatJSON).Decode(bom)).To(Succeed())
			g.Expect(bom.Metadata.Component.Name).To(Equal(p.image))
			g.Expect(bom.Metadata.Component.Version).To(Equal("v0.1.0"))
			g.Expect(bom.Metadata.Timestamp).To(BeEmpty())
			g.Expect(bom.SerialNumber).To(BeEmpty())

			// The modules of this checkout have no version.
			const path = `{{with .Module}}{{with or .Replace .}}{{if .Version}}{{.Path}}@{{.Version}}{{end}}{{end}}{{end}}`
			here, err := goCommand(t.Context(), root, nil, "list", "-deps", "-f", path, "./"+p.folder)
			g.Expect(err).NotTo(HaveOccurred())
			var listed []string
			for _, c := range (*bom.Components)[1:] {
				listed = append(listed, c.Name+"@"+c.Version)
				g.Expect(*c.Hashes).To(ConsistOf(HaveField("Algorithm", cdx.HashAlgoSHA256)), c.Name)
				sum, err := hex.DecodeString((*c.Hashes)[0].Value)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(sum).To(HaveLen(32), c.Name)
			}
			for _, m := range strings.Fields(string(here)) {
				g.Expect(listed).To(ContainElement(m), "the bill has each module in the program for this machine")
			}
			g.Expect((*bom.Components)[0].PackageURL).To(HavePrefix("pkg:golang/std@1."))
			g.Expect(listed).NotTo(ContainElement(HavePrefix("github.com/onsi/ginkgo")), "no modules of tests")
			g.Expect(listed).NotTo(ContainElement(Or(HavePrefix("./"), HavePrefix(modulePath))), "no modules of this release")
			var refs []string
			for _, c := range *bom.Components {
				g.Expect(c.BOMRef).To(Equal(c.PackageURL), c.Name)
				refs = append(refs, c.BOMRef)
			}
			g.Expect(*bom.Dependencies).To(ConsistOf(HaveField("Ref", bom.Metadata.Component.BOMRef)))
			g.Expect(*(*bom.Dependencies)[0].Dependencies).To(ConsistOf(refs))
		})
	}
}

func TestPackageURL(t *testing.T) {
	g := NewWithT(t)
	g.Expect(packageURL("k8s.io/api", "v0.35.1")).To(Equal("pkg:golang/k8s.io/api@v0.35.1"))
	g.Expect(packageURL("github.com/a/b/v2", "v2.0.0")).To(Equal("pkg:golang/github.com/a/b/v2@v2.0.0"))
	g.Expect(packageURL("github.com/a/b", "v2.0.0+incompatible")).To(Equal("pkg:golang/github.com/a/b@v2.0.0%2Bincompatible"))
	g.Expect(packageURL("std", "1.26.1")).To(Equal("pkg:golang/std@1.26.1"))
}

func TestInvalidReleaseIsRefused(t *testing.T) {
	other := t.TempDir()
	NewWithT(t).Expect(os.WriteFile(filepath.Join(other, "mine"), nil, 0o600)).To(Succeed())
	mixed, two, photos, archives, manifest := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	NewWithT(t).Expect(os.MkdirAll(filepath.Join(photos, "photos", "2026"), 0o700)).To(Succeed())
	for _, file := range []string{
		filepath.Join(mixed, checksums), filepath.Join(mixed, "mine"), filepath.Join(two, checksums), filepath.Join(archives, "backup.tar.gz"),
		filepath.Join(manifest, "monitoring.yaml"),
	} {
		NewWithT(t).Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
	}
	for _, version := range []string{"v0.1.0", "v0.0.9"} {
		NewWithT(t).Expect(os.MkdirAll(filepath.Join(two, providers[0].label, version), 0o700)).To(Succeed())
	}
	for situation, tc := range map[string]struct{ version, registry, out, err string }{
		"files of the user with checksums": {
			"v0.1.0", "registry.example.com/team", mixed,
			"contains more than one release or other files (mine)",
		},
		"folders of the user": {
			"v0.1.0", "registry.example.com/team", photos,
			"contains more than one release or other files (photos)",
		},
		"an archive of the user with checksums": {
			"v0.1.0", "registry.example.com/team", archives,
			"contains more than one release or other files (backup.tar.gz)",
		},
		"a manifest of the user with the name of a released one": {
			"v0.1.0", "registry.example.com/team", manifest, "has no SHA256SUMS, unlike a release",
		},
		"a folder with two releases": {
			"v0.1.0", "registry.example.com/team", two,
			"contains more than one release or other files (" + providers[0].label + ")",
		},
		"no version":                           {"", "registry.example.com/team", "", `VERSION must be a semantic version with a leading v`},
		"the version of a build":               {"dev", "registry.example.com/team", "", `not "dev"`},
		"a version without v":                  {"0.1.0", "registry.example.com/team", "", `not "0.1.0"`},
		"a version without patch":              {"v0.1", "registry.example.com/team", "", `not "v0.1"`},
		"a version that no image tag can have": {"v0.1.0+build", "registry.example.com/team", "", `not "v0.1.0+build"`},
		"a series without contract": {
			"v7.0.0", "registry.example.com/team", "", "metadata.yaml has no series v7.0",
		},
		"an empty registry": {"v0.1.0", "", "", `REGISTRY must be a registry with a path and no scheme`},
		"a URL as registry": {"v0.1.0", "https://registry.example.com", "", `not "https://registry.example.com"`},
		"a folder of the user": {
			"v0.1.0", "registry.example.com/team", other,
			"contains more than one release or other files (mine)",
		},
		"a prerelease in a folder of the user": {
			"v0.1.0-rc.1", "registry.example.com/team", other,
			"contains more than one release or other files (mine)",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			out := tc.out
			if out == "" {
				out = filepath.Join(t.TempDir(), "out")
			}
			err := run(t.Context(), []string{"-root", root, "-out", out, "-version", tc.version, "-registry", tc.registry}, t.Output())
			g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
			if tc.out == "" {
				g.Expect(out).NotTo(BeADirectory())
			}
		})
	}
	NewWithT(t).Expect(filepath.Join(other, "mine")).To(BeAnExistingFile())
	NewWithT(t).Expect(filepath.Join(manifest, "monitoring.yaml")).To(BeAnExistingFile())
}
