package components

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/filelock"
)

// Builder builds the components of a checkout and returns their paths.
type Builder struct {
	root string
	out  io.Writer
	// printed are the messages of once.
	printed sync.Map
}

// NewBuilder returns the builder of a checkout. dir is any folder of the checkout; out gets a line for each
// built component.
func NewBuilder(dir string, out io.Writer) (*Builder, error) {
	root, err := findRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Builder{root: root, out: out}, nil
}

// Root returns the top of the checkout.
func (b *Builder) Root() string {
	return b.root
}

// Build builds the missing components. Components with few common packages are built in parallel.
func (b *Builder) Build(ctx context.Context, components ...Component) error {
	missing, err := b.missing(ctx, components)
	if err != nil || len(missing) == 0 {
		return err
	}
	unlock, err := b.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if missing, err = b.missing(ctx, missing); err != nil { // without those that another process has built meanwhile
		return err
	}
	progress := newProgress(missing, time.Now())
	shown := show(b, progress)
	defer shown.end()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	order := lanes(missing)
	go b.fetch(ctx, later(order))
	for _, lane := range order {
		group.Go(func() error {
			for _, c := range lane {
				if err := shown.builder.make(ctx, c, progress.begin(c)); err != nil {
					return err
				}
				progress.end(c)
				shown.built(time.Now())
			}
			return nil
		})
	}
	return group.Wait()
}

// fetch downloads the modules of components that are built later, so that their builds need not wait. The build
// itself reports errors. `go mod download` would download all modules of the go.mod, which are more than the
// build needs.
func (b *Builder) fetch(ctx context.Context, components []Component) {
	for _, c := range components {
		r, err := b.recipe(c)
		if err != nil {
			return
		}
		pkg, err := b.packageOf(c)
		if err != nil {
			return
		}
		_, _ = b.goCommand(ctx, r.source, "list", "-deps", pkg)
	}
}

// Program returns the path of a component: the program in [Assets], or the built program. It builds a program
// that is missing or has changed inputs.
func (b *Builder) Program(ctx context.Context, c Component) (string, error) {
	if program := b.offered(ctx, c); program != "" {
		return program, nil
	}
	if err := b.Build(ctx, c); err != nil {
		return "", err
	}
	r, err := b.recipe(c)
	return r.target, err
}

// recipe has the inputs and the path of a component.
type recipe struct {
	source, target, version, inputs string
}

func (b *Builder) recipe(c Component) (recipe, error) {
	if c.tools == "" {
		return recipe{source: filepath.Join(b.root, c.own), target: filepath.Join(b.root, ".tools", "managers", c.binary)}, nil
	}
	source := filepath.Join(b.root, "test", "tools", c.tools)
	version, err := b.version(c)
	if err != nil {
		return recipe{}, err
	}
	inputs, err := hashFiles(source)
	if err != nil {
		return recipe{}, fmt.Errorf("cannot hash the inputs of %s: %w", c.binary, err)
	}
	return recipe{
		source: source, target: filepath.Join(b.root, ".tools", c.tools+"-"+version, c.binary), version: version,
		inputs: inputs,
	}, nil
}

// version returns the version of the module of a component.
func (b *Builder) version(c Component) (string, error) {
	return moduleVersion(filepath.Join(b.root, "test", "tools", c.tools, "go.mod"), c.module)
}

// missing returns the components that are neither offered nor built, and our own. Only the go command detects
// changes of our own.
func (b *Builder) missing(ctx context.Context, components []Component) ([]Component, error) {
	var missing []Component
	for _, c := range components {
		r, err := b.recipe(c)
		if err != nil {
			return nil, err
		}
		if b.offered(ctx, c) == "" && (r.inputs == "" || !built(r.target, r.inputs)) {
			missing = append(missing, c)
		}
	}
	return missing, nil
}

// HasBuilt reports whether no component of another module is missing.
func (b *Builder) HasBuilt(ctx context.Context, components ...Component) (bool, error) {
	missing, err := b.missing(ctx, components)
	foreign := func(c Component) bool { return c.tools != "" }
	return err == nil && !slices.ContainsFunc(missing, foreign), err
}

// make builds a component and counts its packages. The caller holds the lock.
func (b *Builder) make(ctx context.Context, c Component, counted *compilation) error {
	r, err := b.recipe(c)
	if err != nil {
		return err
	}
	pkg, err := b.packageOf(c)
	if err != nil {
		return err
	}
	flags := []string{"-ldflags", ldflags(c, r.version)}
	if c.tools == "" {
		flags = append(flags, "-tags", managerTags) // as manager does, which finds nothing to build then
	}
	if _, err := os.Stat(r.target); err != nil { // the list takes longer than the build of a program that has changed
		missing, err := b.notCompiled(ctx, r.source, pkg, flags...)
		if err != nil {
			return err
		}
		counted.expect(missing)
		flags = append(flags, "-v")
	}
	if err := b.build(ctx, counted, r.source, r.target, pkg, flags...); err != nil || r.inputs == "" {
		return err
	}
	return os.WriteFile(r.target+".inputs", []byte(r.inputs), 0o644)
}

// packageOf returns the package that a component is built from.
func (b *Builder) packageOf(c Component) (string, error) {
	if c.pkg != "" {
		return c.pkg, nil
	}
	return toolPackage(filepath.Join(b.root, "test", "tools", c.tools, "go.mod"))
}

// versionVariable is the variable for the version of our managers that the linker sets; see the Makefile.
const versionVariable = "github.com/prometheus/common/version.Version"

// managerTags are the build tags of our managers; see the Makefile.
const managerTags = "grpcnotrace"

// Manager builds a program of this repository. The cache of the go command decides whether it is up to date.
func (b *Builder) Manager(ctx context.Context, name string) (string, error) {
	return b.manager(ctx, name, name, "-s -w")
}

// ReleasedManager is Manager with the version of a release.
func (b *Builder) ReleasedManager(ctx context.Context, name, version string) (string, error) {
	return b.manager(ctx, name, name+"-"+version, "-s -w -X "+versionVariable+"="+version)
}

func (b *Builder) manager(ctx context.Context, name, file, ldflags string) (string, error) {
	unlock, err := b.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	target := filepath.Join(b.root, ".tools", "managers", file)
	return target, b.build(ctx, &bytes.Buffer{}, b.root, target, "./"+name, "-tags", managerTags, "-ldflags", ldflags)
}

// build runs go build and renames the program, so that an interrupted build leaves no incomplete program and a
// running program is not overwritten. The go command gets the existing program, because it links only changed
// programs. messages receives what the go command writes to its standard error output.
func (b *Builder) build(ctx context.Context, messages output, source, target, pkg string, flags ...string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("cannot create the folder of %s: %w", target, err)
	}
	start := time.Now()
	temporary := target + ".new"
	if err := offer(target, temporary); err != nil {
		return fmt.Errorf("cannot prepare the path of %s: %w", target, err)
	}
	args := slices.Concat([]string{"build", "-buildvcs=false"}, flags, []string{"-o", temporary, pkg})
	if _, err := runWith(ctx, messages, source, "go", args...); err != nil {
		return fmt.Errorf("cannot build %s: %w", filepath.Base(target), err)
	}
	if same(target, temporary) {
		return os.Remove(temporary)
	}
	if err := os.Rename(temporary, target); err != nil {
		return fmt.Errorf("cannot rename %s: %w", target, err)
	}
	name, err := filepath.Rel(b.root, target)
	if err != nil {
		name = target
	}
	b.sayf("built %s in %s", name, time.Since(start).Round(100*time.Millisecond))
	return nil
}

// offer links a program to a second name and replaces leftovers of an interrupted build. Without the link the
// go command links the program again.
func offer(program, name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.Link(program, name)
	return nil
}

// same reports whether two paths are the same file.
func same(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// lock prevents concurrent builds by other processes.
func (b *Builder) lock() (unlock func(), err error) {
	path := filepath.Join(b.root, ".tools", "lock")
	file, err := filelock.Try(path)
	if errors.Is(err, filelock.ErrHeld) {
		b.sayf("waiting for another process that builds (%s)", path)
		file, err = filelock.Wait(path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}

// goCommand runs the go command in dir and returns its standard output.
func (b *Builder) goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return run(ctx, dir, "go", args...)
}

func (b *Builder) sayf(format string, args ...any) {
	fmt.Fprintf(b.out, format+"\n", args...)
}

// once prints a message the first time only.
func (b *Builder) once(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if _, printed := b.printed.LoadOrStore(line, true); !printed {
		b.sayf("%s", line)
	}
}

// collectLess makes the compilers of the go command collect garbage less often. It saves a sixth of the work on
// the largest packages and a tenth in total, for a fifth more memory.
const collectLess = "GOGC=400"

// run runs a program; its standard error becomes part of the error.
func run(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	return runWith(ctx, &bytes.Buffer{}, dir, program, args...)
}

// output is a standard error output that is read when the program has ended.
type output interface {
	io.Writer
	fmt.Stringer
}

// runWith is run with a given standard error output, whose text becomes part of the error.
func runWith(ctx context.Context, stderr output, dir, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", collectLess)
	cmd.Stderr = stderr
	stdout, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout, nil
}

func ldflags(c Component, version string) string {
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

// built reports whether the program exists and was built from these inputs.
func built(target, inputs string) bool {
	recorded, err := os.ReadFile(target + ".inputs")
	if err != nil || string(recorded) != inputs {
		return false
	}
	_, err = os.Stat(target)
	return err == nil
}

// hashFiles returns a hash of the names and contents of all files in a folder.
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
