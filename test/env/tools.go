package env

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// DefaultCoreTools is the folder below test/tools with the version of Cluster API core that runs if none is asked for.
const DefaultCoreTools = "cluster-api"

// modulePath is the module of this repository; it tells the top of a checkout from other modules.
const modulePath = "github.com/openshift-agent/cluster-api-provider-openshift-agent"

// component is a program that is built from a module of its own below test/tools.
type component struct {
	// dir is the folder below test/tools.
	dir string
	// module is what is built, and whose version names the result.
	module string
	// binary is the name of the program, pkg the package it is built from.
	binary, pkg string
	// versioned programs are told their version by the linker, as Kubernetes' own build does.
	versioned bool
	// variables are string variables of the program that the linker sets, by their full names.
	variables map[string]string
}

const (
	kubernetesModule = "k8s.io/kubernetes"
	coreModule       = "sigs.k8s.io/cluster-api"
	metal3Module     = "github.com/metal3-io/cluster-api-provider-metal3"
	ipamModule       = "github.com/metal3-io/ip-address-manager"
	bmoModule        = "github.com/metal3-io/baremetal-operator"
)

var (
	etcdBuild          = component{dir: "etcd", module: "go.etcd.io/etcd/server/v3", binary: "etcd", pkg: "."}
	apiServerBuild     = component{dir: "kubernetes", module: kubernetesModule, binary: "kube-apiserver", pkg: "k8s.io/kubernetes/cmd/kube-apiserver", versioned: true}
	controllersBuild   = component{dir: "kubernetes", module: kubernetesModule, binary: "kube-controller-manager", pkg: "k8s.io/kubernetes/cmd/kube-controller-manager", versioned: true}
	metal3Build        = component{dir: "capm3", module: metal3Module, binary: "capm3", pkg: metal3Module}
	controllerGenBuild = component{dir: "manifests", module: "sigs.k8s.io/controller-tools", binary: "controller-gen", pkg: "sigs.k8s.io/controller-tools/cmd/controller-gen"}
	clusterctlBuild    = component{dir: "clusterctl", module: coreModule, binary: "clusterctl", pkg: coreModule + "/cmd/clusterctl"}
	kustomizeBuild     = component{dir: "manifests", module: "sigs.k8s.io/kustomize/kustomize/v5", binary: "kustomize", pkg: "sigs.k8s.io/kustomize/kustomize/v5"}
)

// toolbox builds the components of one checkout and knows where they are.
type toolbox struct {
	root string
	out  io.Writer
}

// coreBuild is Cluster API core in the version that a folder below test/tools requires.
func coreBuild(tools string) component {
	return component{dir: cmp.Or(tools, DefaultCoreTools), module: coreModule, binary: "cluster-api", pkg: coreModule}
}

// clusterBuilds are what a management cluster consists of, and the tools that render its manifests.
func clusterBuilds(coreTools string) []component {
	return []component{kustomizeBuild, controllerGenBuild, etcdBuild, apiServerBuild, controllersBuild, coreBuild(coreTools), metal3Build}
}

// Build builds every component that Start, StartAssistedService and Clusterctl need and that is not there yet; dir is any
// folder of the checkout, coreTools as in [Options], out gets one line for each thing that is built. They do the same; Build
// is for whoever wants it done beforehand. Where PostgreSQL is missing, Build also installs it, if it may: as root, where
// there is apt-get. If it may not, it says so on out.
func Build(ctx context.Context, dir, coreTools string, out io.Writer) error {
	root, err := findRoot(dir)
	if err != nil {
		return err
	}
	t := &toolbox{root: root, out: out}
	if err := t.buildAll(ctx, slices.Concat(clusterBuilds(coreTools), []component{clusterctlBuild}, assistedBuilds)); err != nil {
		return err
	}
	return t.providePostgres(ctx)
}

// Clusterctl returns the path of clusterctl, which it builds when it is not there yet; dir and out are as for [Build].
func Clusterctl(ctx context.Context, dir string, out io.Writer) (string, error) {
	root, err := findRoot(dir)
	if err != nil {
		return "", err
	}
	return (&toolbox{root: root, out: out}).program(ctx, clusterctlBuild)
}

func (t *toolbox) buildAll(ctx context.Context, components []component) error {
	for _, c := range components {
		if _, err := t.program(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// program returns the path of the built component and builds it when it is missing or its inputs changed.
func (t *toolbox) program(ctx context.Context, c component) (string, error) {
	source := filepath.Join(t.root, "test", "tools", c.dir)
	version, err := moduleVersion(filepath.Join(source, "go.mod"), c.module)
	if err != nil {
		return "", err
	}
	inputs, err := hashFiles(source)
	if err != nil {
		return "", fmt.Errorf("cannot hash the inputs of %s: %w", c.binary, err)
	}
	target := filepath.Join(t.root, ".tools", c.dir+"-"+version, c.binary)
	if built(target, inputs) {
		return target, nil
	}
	unlock, err := t.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	if built(target, inputs) { // by the process that held the lock
		return target, nil
	}
	if err := t.build(ctx, source, target, c.pkg, ldflags(c, version)); err != nil {
		return "", err
	}
	return target, os.WriteFile(target+".inputs", []byte(inputs), 0o644)
}

// manager builds one of this repository's own programs. The go command's cache decides whether there is anything to do.
func (t *toolbox) manager(ctx context.Context, name string) (string, error) {
	unlock, err := t.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	target := filepath.Join(t.root, ".tools", "managers", name)
	return target, t.build(ctx, t.root, target, "./"+name, "-s -w")
}

// build runs go build and puts the program in its place in one step: an interrupted build leaves no half program, and a
// program that runs is not written to.
func (t *toolbox) build(ctx context.Context, source, target, pkg, ldflags string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("cannot create the folder of %s: %w", target, err)
	}
	start := time.Now()
	temporary := target + ".new"
	if _, err := t.goCommand(ctx, source, "build", "-buildvcs=false", "-ldflags", ldflags, "-o", temporary, pkg); err != nil {
		return fmt.Errorf("cannot build %s: %w", filepath.Base(target), err)
	}
	if err := os.Rename(temporary, target); err != nil {
		return fmt.Errorf("cannot put %s in its place: %w", target, err)
	}
	name, err := filepath.Rel(t.root, target)
	if err != nil {
		name = target
	}
	t.sayf("built %s in %s", name, time.Since(start).Round(100*time.Millisecond))
	return nil
}

// lock keeps other processes from building at the same time.
func (t *toolbox) lock() (unlock func(), err error) {
	path := filepath.Join(t.root, ".tools", "lock")
	file, err := lockFile(path, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		t.sayf("waiting for another process that builds (%s)", path)
		file, err = lockFile(path, syscall.LOCK_EX)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}

// moduleDir returns the folder of a module that the go.mod in dir (relative to the top) requires. It downloads the module
// if need be, checked against the go.sum there; the modules that this one requires are not needed.
func (t *toolbox) moduleDir(ctx context.Context, dir, module string) (string, error) {
	output, err := t.goCommand(ctx, filepath.Join(t.root, dir), "mod", "download", "-json", module)
	if err != nil {
		return "", fmt.Errorf("cannot find module %s: %w", module, err)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(output, &found); err != nil {
		return "", fmt.Errorf("cannot read where module %s is: %w", module, err)
	}
	return found.Dir, nil
}

// goCommand runs the go command in dir and returns its standard output.
func (t *toolbox) goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return run(ctx, dir, "go", args...)
}

func (t *toolbox) sayf(format string, args ...any) {
	fmt.Fprintf(t.out, format+"\n", args...)
}

// run runs a program to its end; what it wrote to standard error becomes part of the error.
func run(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return output, nil
}

func ldflags(c component, version string) string {
	flags := []string{"-s", "-w"}
	for _, name := range slices.Sorted(maps.Keys(c.variables)) {
		flags = append(flags, "-X", name+"="+c.variables[name])
	}
	if c.versioned {
		major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
		minor, _, _ = strings.Cut(minor, ".")
		const variable = "k8s.io/component-base/version."
		flags = append(flags, "-X", variable+"gitVersion="+version, "-X", variable+"gitMajor="+major, "-X", variable+"gitMinor="+minor)
	}
	return strings.Join(flags, " ")
}

// built tells whether the program is there and was built from these inputs.
func built(target, inputs string) bool {
	recorded, err := os.ReadFile(target + ".inputs")
	if err != nil || string(recorded) != inputs {
		return false
	}
	_, err = os.Stat(target)
	return err == nil
}

// hashFiles returns a hash over the names and contents of the files in a folder and those below it.
func hashFiles(dir string) (string, error) {
	hash := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		fmt.Fprintf(hash, "%s %d\n%s", name, len(content), content)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil)), err
}

// moduleVersion reads from a go.mod which version of a module it requires.
func moduleVersion(goMod, module string) (string, error) {
	content, err := os.ReadFile(goMod)
	if err != nil {
		return "", fmt.Errorf("cannot read versions: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		fields := slices.DeleteFunc(strings.Fields(line), func(s string) bool { return s == "require" })
		if len(fields) >= 2 && fields[0] == module && strings.HasPrefix(fields[1], "v") {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", goMod, module)
}

// findRoot returns the top of the checkout that dir is in.
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
