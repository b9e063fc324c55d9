// Command run tests packages like go test, but links only the test programs with changes. go test links each program
// every time, which takes longer than most of the tests. A package of another module, which the current one replaces by
// a folder, is tested with the versions of its own module.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/program"
)

func main() {
	r := runner{out: os.Stdout}
	flag.StringVar(&r.programs, "programs", filepath.Join("bin", "tests"), "the folder in which programs are kept")
	flag.IntVar(&r.atOnce, "at-once", runtime.NumCPU(), "how many packages are tested at a time")
	flag.IntVar(&r.parallel, "parallel", runtime.NumCPU(), "how many parallel tests of a package run at the same time")
	flag.DurationVar(&r.timeout, "timeout", 10*time.Minute, "how long the tests of a package may take")
	flag.Parse()
	program.Main(func(ctx context.Context) error { return r.run(ctx, flag.Args()) })
}

// runner tests packages.
type runner struct {
	out              io.Writer
	dir              string // of the module; empty: the current one
	programs         string
	atOnce, parallel int
	timeout          time.Duration

	mutex  sync.Mutex // of out and failed
	failed int
}

// tested is a package that has tests, with its directory and the directory of its module.
type tested struct{ path, dir, module string }

// run tests the packages that have tests, and prints the result of each in the format of go test.
func (r *runner) run(ctx context.Context, patterns []string) error {
	folders, err := r.list(ctx, patterns)
	if err != nil {
		return err
	}
	if r.programs, err = filepath.Abs(r.programs); err != nil {
		return fmt.Errorf("cannot find the folder of the programs: %w", err)
	}
	var tests errgroup.Group
	tests.SetLimit(r.atOnce)
	// one after the other: linking uses all processors, and two would compile the same
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		r.testFolder(ctx, folder, folders[folder], &tests)
	}
	_ = tests.Wait() // what failed is counted
	if r.failed > 0 {
		return errors.New("FAIL")
	}
	return nil
}

// list returns the packages, by the folder in which they are: no two there have the same name. They may be of the current
// module, and of modules that its go.mod replaces by folders. It does not resolve their imports (-find): the current
// module need not require what only packages of another module import.
func (r *runner) list(ctx context.Context, patterns []string) (map[string][]tested, error) {
	const format = "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}\t{{.Dir}}\t{{.Module.Dir}}{{end}}"
	command := exec.CommandContext(ctx, "go", append([]string{"list", "-find", "-f", format}, patterns...)...)
	command.Dir, command.Stderr = r.dir, os.Stderr
	listed, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list packages: %w", err)
	}
	folders := map[string][]tested{}
	for line := range strings.Lines(string(listed)) {
		if fields := strings.Split(strings.TrimSpace(line), "\t"); len(fields) == 3 {
			folder := path.Dir(fields[0])
			folders[folder] = append(folders[folder], tested{path: fields[0], dir: fields[1], module: fields[2]})
		}
	}
	return folders, nil
}

// testFolder links the programs of a folder, and has them run. What else can be tested is, where that fails.
func (r *runner) testFolder(ctx context.Context, folder string, packages []tested, tests *errgroup.Group) {
	if err := r.link(ctx, folder, packages); err != nil {
		r.report(true, err.Error()+"\n")
		return
	}
	for _, p := range packages {
		tests.Go(func() error {
			r.test(ctx, p)
			return nil
		})
	}
}

// link builds the test programs of the packages of a folder, unless they exist already.
func (r *runner) link(ctx context.Context, folder string, packages []tested) error {
	// without what debuggers need, as go test links what it does not keep
	args := []string{"test", "-vet=off", "-ldflags=-s -w", "-c", "-o", r.folder(folder) + string(filepath.Separator)}
	for _, p := range packages {
		args = append(args, p.path)
	}
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = packages[0].module // its go.mod has the versions
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%sFAIL\t%s [build failed]: %w", output, folder, err)
	}
	return nil
}

// folder is where the programs of the packages of a folder are.
func (r *runner) folder(of string) string { return filepath.Join(r.programs, filepath.FromSlash(of)) }

// test runs the tests of a package, in its directory.
func (r *runner) test(ctx context.Context, p tested) {
	begun := time.Now()
	command := exec.CommandContext(ctx, filepath.Join(r.folder(path.Dir(p.path)), path.Base(p.path)+".test"),
		"-test.paniconexit0", fmt.Sprintf("-test.timeout=%s", r.timeout), fmt.Sprintf("-test.parallel=%d", r.parallel))
	command.Dir = p.dir
	// On interruption the program stops its own processes. A process that keeps the output open does not block the end
	// for more than a minute.
	command.Cancel, command.WaitDelay = func() error { return command.Process.Signal(os.Interrupt) }, time.Minute
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err := command.Run()
	took := time.Since(begun).Seconds()
	if err != nil {
		r.report(true, fmt.Sprintf("%s%v\nFAIL\t%s\t%.3fs\n", output.String(), err, p.path, took))
		return
	}
	r.report(false, fmt.Sprintf("ok  \t%s\t%.3fs\n", p.path, took))
}

// report prints a result, and counts failures.
func (r *runner) report(failed bool, what string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if failed {
		r.failed++
	}
	_, _ = io.WriteString(r.out, what) // the output is closed
}
