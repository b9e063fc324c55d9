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

// Builder builds the components of one checkout and knows where they are.
type Builder struct {
	root string
	out  io.Writer
	// told are the lines of once.
	told sync.Map
}

// NewBuilder returns the builder of a checkout; dir is any folder of it, out gets one line for each thing that is built.
func NewBuilder(dir string, out io.Writer) (*Builder, error) {
	root, err := findRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Builder{root: root, out: out}, nil
}

// Root is the top of the checkout.
func (b *Builder) Root() string {
	return b.root
}

// Build builds those of the components that are not there yet, those that have little in common side by side.
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
	if missing, err = b.missing(ctx, missing); err != nil { // but for what the process that held the lock built
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
				progress.begin(c, time.Now())
				if err := shown.builder.make(ctx, c); err != nil {
					return err
				}
				progress.end(c)
			}
			return nil
		})
	}
	return group.Wait()
}

// fetch downloads the modules of components that are built later, which would have the processors wait for them then.
// What is wrong the build itself will tell. `go mod download` would fetch all that the go.mod names, which is more than
// is built.
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

// Program returns the path of a component: of the one that [Assets] offers, or else of the one that is built when it is
// missing or its inputs changed.
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

// recipe is what a component is built from, and where it is put.
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

// version is that of the module of a component.
func (b *Builder) version(c Component) (string, error) {
	return moduleVersion(filepath.Join(b.root, "test", "tools", c.tools, "go.mod"), c.module)
}

// missing are the components that are neither offered nor built, and our own, of which only the go command knows.
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

// make builds a component for a caller that holds the lock.
func (b *Builder) make(ctx context.Context, c Component) error {
	r, err := b.recipe(c)
	if err != nil {
		return err
	}
	pkg, err := b.packageOf(c)
	if err != nil {
		return err
	}
	if err := b.build(ctx, r.source, r.target, pkg, ldflags(c, r.version)); err != nil || r.inputs == "" {
		return err
	}
	return os.WriteFile(r.target+".inputs", []byte(r.inputs), 0o644)
}

// packageOf is the package that a component is built from.
func (b *Builder) packageOf(c Component) (string, error) {
	if c.pkg != "" {
		return c.pkg, nil
	}
	return toolPackage(filepath.Join(b.root, "test", "tools", c.tools, "go.mod"))
}

// versionVariable is what the linker tells our managers of a release; see the Makefile.
const versionVariable = "github.com/prometheus/common/version.Version"

// Manager builds one of this repository's own programs. The go command's cache decides whether there is anything to do.
func (b *Builder) Manager(ctx context.Context, name string) (string, error) {
	return b.manager(ctx, name, name, "-s -w")
}

// ReleasedManager is the same with the version of a release.
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
	return target, b.build(ctx, b.root, target, "./"+name, ldflags)
}

// build runs go build and puts the program in its place in one step: an interrupted build leaves no half program, and a
// program that runs is not written to. The go command gets to see what is there already, since it links nothing again that did not change.
func (b *Builder) build(ctx context.Context, source, target, pkg, ldflags string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("cannot create the folder of %s: %w", target, err)
	}
	start := time.Now()
	temporary := target + ".new"
	if err := offer(target, temporary); err != nil {
		return fmt.Errorf("cannot prepare the place of %s: %w", target, err)
	}
	if _, err := b.goCommand(ctx, source, "build", "-buildvcs=false", "-ldflags", ldflags, "-o", temporary, pkg); err != nil {
		return fmt.Errorf("cannot build %s: %w", filepath.Base(target), err)
	}
	if same(target, temporary) {
		return os.Remove(temporary)
	}
	if err := os.Rename(temporary, target); err != nil {
		return fmt.Errorf("cannot put %s in its place: %w", target, err)
	}
	name, err := filepath.Rel(b.root, target)
	if err != nil {
		name = target
	}
	b.sayf("built %s in %s", name, time.Since(start).Round(100*time.Millisecond))
	return nil
}

// offer gives a program a second name, in place of what an interrupted build left there. Where that cannot be, or there
// is no program, it is linked.
func offer(program, name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.Link(program, name)
	return nil
}

// same reports whether two names are those of one file.
func same(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// lock keeps other processes from building at the same time.
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

// once says something the first time only.
func (b *Builder) once(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if _, told := b.told.LoadOrStore(line, true); !told {
		b.sayf("%s", line)
	}
}

// collectLess lets the compilers that the go command starts have more garbage before they collect it: that is a sixth
// of their work on the largest packages, a tenth of it in all, for a fifth more memory.
const collectLess = "GOGC=400"

// run runs a program to its end; what it wrote to standard error becomes part of the error.
func run(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", collectLess)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return output, nil
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

// built reports whether the program is there and was built from these inputs.
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
