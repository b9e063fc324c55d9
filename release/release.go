package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/release/chart"
)

const (
	// developedRegistry and developedTag are the registry and the tag of the images in config/.
	developedRegistry, developedTag = "ghcr.io/openshift-agent", "dev"
	// checksums is the file that `sha256sum --check` reads.
	checksums = "SHA256SUMS"
	// sbomFile is the name of a software bill of materials. CycloneDX recommends this extension.
	sbomFile     = "sbom.cdx.json"
	metadataFile = "metadata.yaml"
	// extensionFile has the objects of the runtime extension for in-place updates.
	extensionFile = "in-place-updates.yaml"
	// hubFile has the additional rights for hubs on OpenShift, hubFileNamespaced those for managers that watch
	// one namespace.
	hubFile, hubFileNamespaced = "openshift-hub.yaml", "openshift-hub-namespaced.yaml"
	// providerName is the name of both providers in clusterctl and the Cluster API operator, without their
	// types.
	providerName = "openshift-agent"
)

// provider is one of the two released providers.
type provider struct {
	// label is the provider's name with its type, and the name of its folder in a repository of clusterctl.
	label string
	// components is the file that clusterctl installs, without .yaml.
	components string
	// folder is the folder of its main package, and of its manifests in config/.
	folder string
	// image is the name of its image.
	image string
	// namespace is where the provider is installed, operatorKind its kind in the Cluster API operator.
	namespace, operatorKind string
	// values is the provider's section in the values of the chart.
	values string
	// additional are the patterns of additional files for users, relative to the top of the checkout.
	additional []string
}

func (p provider) inChart() chart.Provider {
	return chart.Provider{Folder: p.folder, Namespace: p.namespace, Values: p.values}
}

// manifestsIn selects the manifests for the chart among the released files of the provider.
func (p provider) manifestsIn(files map[string][]byte) chart.Manifests {
	return chart.Manifests{
		ClusterWide: files[p.components+".yaml"], Namespaced: files[p.components+"-namespaced.yaml"], Extension: files[extensionFile],
		Hub: files[hubFile], HubNamespaced: files[hubFileNamespaced],
	}
}

// providers are the released providers. The cluster templates belong to the control plane provider: clusterctl
// reads templates from the release of the infrastructure provider, which is another project.
var providers = []provider{
	{
		label: "bootstrap-openshift-agent", components: "bootstrap-components", folder: "bootstrap", image: "agent-bootstrap-provider",
		namespace: "openshift-agent-bootstrap-system", operatorKind: "BootstrapProvider", values: "bootstrap",
		additional: []string{"config/bootstrap/openshift-hub*.yaml"},
	},
	{
		label: "control-plane-openshift-agent", components: "control-plane-components", folder: "controlplane",
		image:     "agent-control-plane-provider",
		namespace: "openshift-agent-control-plane-system", operatorKind: "ControlPlaneProvider", values: "controlPlane",
		additional: []string{"config/templates/cluster*.yaml", "config/controlplane/" + extensionFile, "config/controlplane/openshift-hub*.yaml"},
	},
}

// release holds the parameters of a release.
type release struct {
	root, out, version, registry string
	// assets is the folder for the files with the names of a GitHub release. It may be empty.
	assets string
	// imagesFile is a file with the images by digest. Without it, the version is the tag of the images.
	imagesFile string
	// digests are the digests of the images, by image name.
	digests map[string]string
	// plugin is true if the release contains the kubectl plugin.
	plugin bool
}

// validate rejects parameters that clusterctl or a registry would reject later.
func (r *release) validate() error {
	if semver.Canonical(r.version) != r.version || r.version == "" {
		return fmt.Errorf("VERSION must be a semantic version with a leading v and without build metadata, such as v0.1.0 or v0.2.0-rc.1, not "+
			"%q", r.version)
	}
	for _, p := range providers {
		if _, err := name.NewTag(r.imageOf(p), name.StrictValidation); err != nil || strings.Contains(r.registry, "://") {
			return errors.Join(fmt.Errorf("REGISTRY must be a registry with a path and no scheme, such as registry.example.com/openshift-agent, "+
				"not %q", r.registry), err)
		}
	}
	return r.validateSeries()
}

// validateSeries requires an entry for the series in metadata.yaml. Without an entry clusterctl does not know
// the contract of the series and installs no version of it.
func (r *release) validateSeries() error {
	content, err := os.ReadFile(filepath.Join(r.root, metadataFile))
	if err != nil {
		return fmt.Errorf("cannot read the release series: %w", err)
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
	return fmt.Errorf("%s has no series %s: add the series with its contract", metadataFile, semver.MajorMinor(r.version))
}

// imageOf returns the image of a manager in this release.
func (r *release) imageOf(p provider) string {
	if digest := r.digests[p.image]; digest != "" {
		return r.registry + "/" + p.image + "@" + digest
	}
	return r.registry + "/" + p.image + ":" + r.version
}

// write writes the release, and its assets if they have a folder. Nothing is written before all files are complete.
func (r *release) write(ctx context.Context) error {
	if err := errors.Join(replaceable(r.out), r.newAssets()); err != nil {
		return err
	}
	files, err := r.files(ctx)
	if err != nil {
		return err
	}
	if err := r.replace(files); err != nil || r.assets == "" {
		return err
	}
	return writeFiles(r.assets, assetsOf(files))
}

// replace writes files to a temporary folder and renames that folder when it is complete.
func (r *release) replace(files map[string][]byte) error {
	parent := filepath.Dir(r.out)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("cannot create the folder of the release: %w", err)
	}
	temporary, err := os.MkdirTemp(parent, ".release-")
	if err != nil {
		return fmt.Errorf("cannot create the folder of the release: %w", err)
	}
	defer os.RemoveAll(temporary) //nolint:errcheck // a leftover is hidden and does no harm
	complete := filepath.Join(temporary, "complete")
	if err := writeFiles(complete, files); err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return fmt.Errorf("cannot remove the previous release: %w", err)
	}
	return os.Rename(complete, r.out)
}

// replaceable returns an error if a folder is not a release, so that no other folder is removed. Users may have files with
// the names of manifests: only a release also has checksums.
func replaceable(out string) error {
	entries, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the folder of the release: %w", err)
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() && isReleased(entry.Name()) {
			continue
		}
		versions, err := os.ReadDir(filepath.Join(out, entry.Name()))
		ours := slices.ContainsFunc(providers, func(p provider) bool { return p.label == entry.Name() })
		if !ours || err != nil || len(versions) != 1 {
			return fmt.Errorf("%s contains more than one release or other files (%s): remove the folder or choose another", out, entry.Name())
		}
	}
	if !slices.ContainsFunc(entries, func(entry fs.DirEntry) bool { return entry.Name() == checksums }) {
		return fmt.Errorf("%s has no %s, unlike a release: remove the folder or choose another", out, checksums)
	}
	return nil
}

// isReleased reports whether a file at the top of a folder may be that of a release.
func isReleased(file string) bool {
	patterns := append(slices.Collect(maps.Keys(manifests)), samplesFile, chart.File("v*"), checksums, krewFile, pluginProgram+"_*.tar.gz")
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		matches, _ := path.Match(pattern, file)
		return matches
	})
}

// files returns all files except the checksums, by path.
func (r *release) files(ctx context.Context) (map[string][]byte, error) {
	c, err := chart.New(r.root, r.version)
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for _, p := range providers {
		files, err := r.filesOf(ctx, p)
		if err == nil {
			err = c.Add(p.inChart(), p.manifestsIn(files))
		}
		if err != nil {
			return nil, fmt.Errorf("provider %s: %w", p.label, err)
		}
		for name, content := range files {
			all[path.Join(p.label, r.version, name)] = content
		}
	}
	common, err := r.commonFiles(ctx)
	if err != nil {
		return nil, err
	}
	maps.Copy(all, common)
	if all[chart.File(r.version)], err = c.Archive(); err != nil || !r.plugin {
		return all, err
	}
	plugin, err := r.pluginFiles(ctx, pluginPlatforms)
	maps.Copy(all, plugin)
	return all, err
}

// filesOf returns the released files of a provider, by name.
func (r *release) filesOf(ctx context.Context, p provider) (map[string][]byte, error) {
	files, err := r.additionalFiles(p)
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

// writeFiles writes files and their checksums to a folder.
func writeFiles(dir string, files map[string][]byte) error {
	written := maps.Clone(files)
	written[checksums] = checksumsOf(files)
	for name, content := range written {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("cannot create the folder: %w", err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return fmt.Errorf("cannot write the release: %w", err)
		}
	}
	return nil
}

// checksumsOf returns the SHA-256 sums of files in the format of sha256sum.
func checksumsOf(files map[string][]byte) []byte {
	var sums bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	return sums.Bytes()
}

// additionalFiles are the files that are released as they are.
func (r *release) additionalFiles(p provider) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, pattern := range append([]string{metadataFile}, p.additional...) {
		paths, err := filepath.Glob(filepath.Join(r.root, pattern))
		if err != nil || len(paths) == 0 {
			return nil, errors.Join(fmt.Errorf("no file matches %s", pattern), err)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("cannot read a file of the release: %w", err)
			}
			files[filepath.Base(path)] = content
		}
	}
	return files, nil
}

// render renders one variant of the components, with the image of this release.
func (r *release) render(ctx context.Context, p provider, variant string) ([]byte, error) {
	components, err := r.kustomize(ctx, path.Join(p.folder, variant))
	if err != nil {
		return nil, err
	}
	developed := []byte("image: " + developedRegistry + "/" + p.image + ":" + developedTag + "\n")
	if n := bytes.Count(components, developed); n != 1 {
		return nil, fmt.Errorf("config/%s/%s has %q %d times, not once", p.folder, variant, bytes.TrimSpace(developed), n)
	}
	return bytes.Replace(components, developed, []byte("image: "+r.imageOf(p)+"\n"), 1), nil
}

// goCommand runs the go command in a folder and returns its output.
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
