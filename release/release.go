package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"golang.org/x/mod/semver"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/yaml"
)

const (
	// developed is the beginning and the end of the images that config/ names.
	developedRegistry, developedTag = "ghcr.io/openshift-agent", "dev"
	// checksums is the file that `sha256sum --check` reads.
	checksums = "SHA256SUMS"
	// sbomFile is the name of a bill of materials; the ending is the one that CycloneDX asks for.
	sbomFile     = "sbom.cdx.json"
	metadataFile = "metadata.yaml"
	// extensionFile has what belongs to the runtime extension for updates in place.
	extensionFile = "in-place-updates.yaml"
	// hubFile has the rights that hubs need which are OpenShift, hubFileNamespaced those of managers of one namespace.
	hubFile, hubFileNamespaced = "openshift-hub.yaml", "openshift-hub-namespaced.yaml"
	// providerName is how clusterctl and the Cluster API operator name both, besides their types.
	providerName = "openshift-agent"
)

// provider is one of the two that are released.
type provider struct {
	// label is how clusterctl names the provider with its type, and so its folder in a repository.
	label string
	// components is the file that clusterctl looks for, without .yaml.
	components string
	// folder holds its package at the top of the checkout, and its manifests below config/.
	folder string
	// image is the name of its image.
	image string
	// namespace is where it is installed, operatorKind how the Cluster API operator has it.
	namespace, operatorKind string
	// values is the section of the chart's values that is about it.
	values string
	// beside are further files for its users, as patterns from the top of the checkout.
	beside []string
}

// providers are what is released. Cluster templates go with the control plane provider: a release of clusterctl's own
// templates would be one of the infrastructure provider, which is another project's.
var providers = []provider{
	{
		label: "bootstrap-openshift-agent", components: "bootstrap-components", folder: "bootstrap", image: "agent-bootstrap-provider",
		namespace: "openshift-agent-bootstrap-system", operatorKind: "BootstrapProvider", values: "bootstrap",
		beside: []string{"config/bootstrap/openshift-hub*.yaml"},
	},
	{
		label: "control-plane-openshift-agent", components: "control-plane-components", folder: "controlplane", image: "agent-control-plane-provider",
		namespace: "openshift-agent-control-plane-system", operatorKind: "ControlPlaneProvider", values: "controlPlane",
		beside: []string{"config/templates/cluster*.yaml", "config/controlplane/" + extensionFile, "config/controlplane/openshift-hub*.yaml"},
	},
}

// release is one release.
type release struct {
	root, out, version, registry string
	// imagesFile names the images by their digests; empty: their tags are the version.
	imagesFile string
	// digests are those of the images, by the names of these.
	digests map[string]string
}

// validate refuses what clusterctl or a registry would refuse later.
func (r *release) validate() error {
	if semver.Canonical(r.version) != r.version || r.version == "" {
		return fmt.Errorf("VERSION must be a semantic version with a leading v and without build metadata, such as v0.1.0 or v0.2.0-rc.1, not %q", r.version)
	}
	for _, p := range providers {
		if _, err := name.NewTag(r.imageOf(p), name.StrictValidation); err != nil || strings.Contains(r.registry, "://") {
			return errors.Join(fmt.Errorf("REGISTRY must be a registry with a path and no scheme, such as registry.example.com/openshift-agent, not %q", r.registry), err)
		}
	}
	return r.validateSeries()
}

// validateSeries asks for an entry of metadata.yaml: clusterctl installs no version of a series whose contract it does not know.
func (r *release) validateSeries() error {
	content, err := os.ReadFile(filepath.Join(r.root, metadataFile))
	if err != nil {
		return fmt.Errorf("cannot read which series are released: %w", err)
	}
	metadata := clusterctlv1.Metadata{}
	if err := yaml.UnmarshalStrict(content, &metadata); err != nil {
		return fmt.Errorf("cannot read %s: %w", metadataFile, err)
	}
	for _, series := range metadata.ReleaseSeries {
		if semver.MajorMinor(r.version) == fmt.Sprintf("v%d.%d", series.Major, series.Minor) {
			return nil
		}
	}
	return fmt.Errorf("%s has no series %s: add it with the contract that it keeps", metadataFile, semver.MajorMinor(r.version))
}

// imageOf is the image of a manager as the release names it.
func (r *release) imageOf(p provider) string {
	if digest := r.digests[p.image]; digest != "" {
		return r.registry + "/" + p.image + "@" + digest
	}
	return r.registry + "/" + p.image + ":" + r.version
}

// write makes the release beside its folder and puts it there as a whole.
func (r *release) write(ctx context.Context) error {
	if err := replaceable(r.out); err != nil {
		return err
	}
	parent := filepath.Dir(r.out)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of the release: %w", err)
	}
	temporary, err := os.MkdirTemp(parent, ".release-")
	if err != nil {
		return fmt.Errorf("cannot make the folder of the release: %w", err)
	}
	defer os.RemoveAll(temporary) //nolint:errcheck // what is left is hidden, and in nobody's way
	whole := filepath.Join(temporary, "whole")
	if err := r.writeInto(ctx, whole); err != nil {
		return err
	}
	if err := writeChecksums(whole); err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return fmt.Errorf("cannot remove the release before: %w", err)
	}
	return os.Rename(whole, r.out)
}

// replaceable refuses to remove a folder that is not a release.
func replaceable(out string) error {
	entries, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot look at the folder of the release: %w", err)
	}
	for _, entry := range entries {
		if isChart, _ := path.Match(chartFile("v*"), entry.Name()); entry.Type().IsRegular() && (isChart || entry.Name() == checksums) {
			continue
		}
		versions, err := os.ReadDir(filepath.Join(out, entry.Name()))
		ours := slices.ContainsFunc(providers, func(p provider) bool { return p.label == entry.Name() })
		if !ours || err != nil || len(versions) != 1 {
			return fmt.Errorf("%s holds something else than one release (%s): remove it, or give another folder", out, entry.Name())
		}
	}
	return nil
}

// writeInto writes all but the checksums into a folder.
func (r *release) writeInto(ctx context.Context, dir string) error {
	c, err := newChart(r.root, r.version)
	if err != nil {
		return err
	}
	for _, p := range providers {
		files, err := r.filesOf(ctx, p)
		if err == nil {
			err = errors.Join(c.add(p, files), writeFiles(filepath.Join(dir, p.label, r.version), files))
		}
		if err != nil {
			return fmt.Errorf("provider %s: %w", p.label, err)
		}
	}
	packed, err := c.archive()
	if err != nil {
		return err
	}
	return writeFiles(dir, map[string][]byte{chartFile(r.version): packed})
}

// filesOf are the files that are released of a provider.
func (r *release) filesOf(ctx context.Context, p provider) (map[string][]byte, error) {
	files, err := r.filesBeside(p)
	if err != nil {
		return nil, err
	}
	for variant, suffix := range map[string]string{"default": "", "namespaced": "-namespaced"} {
		if files[p.components+suffix+".yaml"], err = r.render(ctx, p, variant); err != nil {
			return nil, err
		}
	}
	if files[operatorFile], err = r.operatorManifests(p, files[p.components+".yaml"], files[metadataFile]); err != nil {
		return nil, err
	}
	files[sbomFile], err = r.billOfMaterials(ctx, p)
	return files, err
}

func writeFiles(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder: %w", err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("cannot write the release: %w", err)
		}
	}
	return nil
}

// filesBeside are the files that are released as they are.
func (r *release) filesBeside(p provider) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, pattern := range append([]string{metadataFile}, p.beside...) {
		paths, err := filepath.Glob(filepath.Join(r.root, pattern))
		if err != nil || len(paths) == 0 {
			return nil, errors.Join(fmt.Errorf("there is no %s", pattern), err)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("cannot read what is released: %w", err)
			}
			files[filepath.Base(path)] = content
		}
	}
	return files, nil
}

// render renders one variant of the components, with the image of this release.
func (r *release) render(ctx context.Context, p provider, variant string) ([]byte, error) {
	dir, err := filepath.Abs(filepath.Join(r.root, "config", p.folder, variant))
	if err != nil {
		return nil, fmt.Errorf("cannot find the manifests: %w", err)
	}
	manifests, err := goCommand(ctx, filepath.Join(r.root, "test", "tools", "manifests"), nil, "tool", "kustomize", "build", dir)
	if err != nil {
		return nil, err
	}
	developed := []byte("image: " + developedRegistry + "/" + p.image + ":" + developedTag + "\n")
	if n := bytes.Count(manifests, developed); n != 1 {
		return nil, fmt.Errorf("config/%s/%s has %q %d times, not once", p.folder, variant, bytes.TrimSpace(developed), n)
	}
	return bytes.Replace(manifests, developed, []byte("image: "+r.imageOf(p)+"\n"), 1), nil
}

// goCommand runs the go command in a folder and returns what it writes.
func goCommand(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// writeChecksums writes the SHA-256 sums of all files of a folder into it.
func writeChecksums(dir string) error {
	var sums strings.Builder
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error { // in lexical order
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, path))
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), path)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot compute the checksums: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, checksums), []byte(sums.String()), 0o644)
}
