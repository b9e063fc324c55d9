package components

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The modules of assisted-service and Hive contain only Go types of their kinds.
const (
	assistedModule = "github.com/openshift/assisted-service/api"
	hiveModule     = "github.com/openshift/hive/apis"
)

// Kustomize renders a kustomization.
func (b *Builder) Kustomize(ctx context.Context, dir string) ([]byte, error) {
	program, err := b.Program(ctx, kustomize)
	if err != nil {
		return nil, err
	}
	manifests, err := run(ctx, b.root, program, "build", dir)
	if err != nil {
		return nil, fmt.Errorf("cannot render manifests: %s", strings.TrimSpace(err.Error()))
	}
	return manifests, nil
}

// Manifests renders the manifests of a manager, by default those next to the package of its program.
func (b *Builder) Manifests(ctx context.Context, c Component) ([]byte, error) {
	pkg, err := b.packageOf(c)
	if err != nil {
		return nil, err
	}
	adjacent := filepath.Join(strings.TrimPrefix(pkg, c.module), "config", "default")
	return b.KustomizeModule(ctx, c.tools, c.module, cmp.Or(c.manifests, adjacent))
}

// Release has the files that a foreign provider publishes for clusterctl.
type Release struct {
	Version              string
	Components, Metadata []byte
}

// Release renders the release of a manager from its module, with the images in its manifests.
func (b *Builder) Release(ctx context.Context, c Component) (Release, error) {
	folder := filepath.Join("test", "tools", c.tools)
	version, err := moduleVersion(filepath.Join(b.root, folder, "go.mod"), c.module)
	if err != nil {
		return Release{}, err
	}
	dir, err := b.ModuleDir(ctx, folder, c.module)
	if err != nil {
		return Release{}, err
	}
	metadata, err := os.ReadFile(filepath.Join(dir, "metadata.yaml"))
	if err != nil {
		return Release{}, fmt.Errorf("cannot read the contracts of %s: %w", c.module, err)
	}
	manifests, err := b.Manifests(ctx, c)
	return Release{Version: version, Components: manifests, Metadata: metadata}, err
}

// KustomizeModule renders a kustomization in a module that test/tools requires.
func (b *Builder) KustomizeModule(ctx context.Context, tools, module, folder string) ([]byte, error) {
	dir, err := b.ModuleDir(ctx, filepath.Join("test", "tools", tools), module)
	if err != nil {
		return nil, err
	}
	return b.Kustomize(ctx, filepath.Join(dir, folder))
}

// GenerateCRDs runs controller-gen for the Go types of assisted-service and Hive in the module test/tools/crds. It returns
// the folder with the CRDs, which is kept for each pair of versions.
func (b *Builder) GenerateCRDs(ctx context.Context) (string, error) {
	types := filepath.Join(b.root, "test", "tools", "crds")
	goMod := filepath.Join(types, "go.mod")
	assisted, err := moduleVersion(goMod, assistedModule)
	if err != nil {
		return "", err
	}
	hive, err := moduleVersion(goMod, hiveModule)
	if err != nil {
		return "", err
	}
	program, err := b.Program(ctx, controllerGen)
	if err != nil {
		return "", err
	}
	unlock, err := b.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	dir := filepath.Join(b.root, ".tools", "crds-"+assisted+"-"+hive)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	temporary := dir + ".new"
	if err := os.RemoveAll(temporary); err != nil {
		return "", fmt.Errorf("cannot remove an incomplete folder: %w", err)
	}
	// allowDangerousTypes: AgentServiceConfig and Hive have float fields.
	_, err = run(ctx, types, program, "crd:crdVersions=v1,allowDangerousTypes=true",
		"paths="+assistedModule+"/v1beta1;"+assistedModule+"/hiveextension/v1beta1;"+hiveModule+"/hive/v1",
		"output:crd:dir="+temporary)
	if err != nil {
		return "", fmt.Errorf("cannot generate the CRDs of assisted-service and hive: %w", err)
	}
	if err := os.Rename(temporary, dir); err != nil {
		return "", fmt.Errorf("cannot rename the folder of the generated CRDs: %w", err)
	}
	b.sayf("generated the CRDs of assisted-service and hive")
	return dir, nil
}
