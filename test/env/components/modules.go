package components

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/blang/semver/v4"
	"golang.org/x/mod/modfile"
)

// modulePath is the module of this repository, which identifies the top of a checkout.
const modulePath = "github.com/openshift-agent/cluster-api-provider-openshift-agent"

// ModuleDir returns the folder of a module that the go.mod in dir (relative to the top) requires. It downloads
// the module if needed, verified with the go.sum of dir, without the module's own requirements.
func (b *Builder) ModuleDir(ctx context.Context, dir, module string) (string, error) {
	output, err := b.goCommand(ctx, filepath.Join(b.root, dir), "mod", "download", "-json", module)
	if err != nil {
		return "", fmt.Errorf("cannot find module %s: %w", module, err)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(output, &found); err != nil {
		return "", fmt.Errorf("cannot read the folder of module %s: %w", module, err)
	}
	return found.Dir, nil
}

// readModule reads a go.mod.
func readModule(goMod string) (*modfile.File, error) {
	content, err := os.ReadFile(goMod)
	if err != nil {
		return nil, fmt.Errorf("cannot read versions: %w", err)
	}
	parsed, err := modfile.Parse(goMod, content, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot read versions: %w", err)
	}
	return parsed, nil
}

// moduleVersion returns the version of a module that a go.mod requires.
func moduleVersion(goMod, module string) (string, error) {
	parsed, err := readModule(goMod)
	if err != nil {
		return "", err
	}
	for _, required := range parsed.Require {
		if required.Mod.Path == module {
			return required.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", goMod, module)
}

// CoreVersion returns the version of Cluster API core that a folder of test/tools requires; empty means
// [DefaultCoreTools].
func (b *Builder) CoreVersion(tools string) (semver.Version, error) {
	core := Core(tools)
	version, err := moduleVersion(filepath.Join(b.root, "test", "tools", core.tools, "go.mod"), core.module)
	if err != nil {
		return semver.Version{}, err
	}
	return semver.ParseTolerant(version)
}

// toolPackage returns the package of the tool in a go.mod.
func toolPackage(goMod string) (string, error) {
	parsed, err := readModule(goMod)
	if err != nil {
		return "", err
	}
	if len(parsed.Tool) == 0 {
		return "", fmt.Errorf("%s has no tool", goMod)
	}
	return parsed.Tool[0].Path, nil
}

// findRoot returns the top of the checkout that contains dir.
func findRoot(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot find the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(content), "module "+modulePath+"\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in a checkout of %s", start, modulePath)
		}
	}
}
