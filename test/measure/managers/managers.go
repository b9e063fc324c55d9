// Package managers samples the managers of this repository while they are measured: their memory, processor time,
// goroutines, files, and profiles.
package managers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

// Names are the names of the measured managers.
var Names = []string{env.Bootstrap, env.ControlPlane}

// BaseMemory is the limit of the peak memory of each manager on a hub without clusters, in MiB.
var BaseMemory = map[string]float64{env.ControlPlane: 90, env.Bootstrap: 80}

// Options returns the options with which a laboratory starts the measured managers.
func Options() env.ManagerOptions { return env.ManagerOptions{ExtraArgs: diagnosticsArgs} }

// Managers are the managers of a laboratory.
type Managers struct {
	lab         *lab.Lab
	diagnostics *diagnostics
}

// Of returns the managers of a laboratory that was started with [Options].
func Of(ctx context.Context, l *lab.Lab) (*Managers, error) {
	d, err := newDiagnostics(ctx, l.Client())
	return &Managers{lab: l, diagnostics: d}, err
}

// Start starts both managers.
func (m *Managers) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range Names {
		group.Go(func() error { return m.lab.Env.Manager(name).Start(ctx) })
	}
	return group.Wait()
}

// Stop stops both managers.
func (m *Managers) Stop() {
	for _, name := range Names {
		m.lab.Env.Manager(name).Stop()
	}
}

// Users returns the users of the managers on the hub.
func (m *Managers) Users() []string {
	users := make([]string, 0, len(Names))
	for _, name := range Names {
		users = append(users, m.lab.Env.Manager(name).User)
	}
	return users
}

// NameOf returns the name of the manager with a user, or the user.
func (m *Managers) NameOf(user string) string {
	if i := slices.Index(m.Users(), user); i >= 0 {
		return Names[i]
	}
	return user
}

// Usage returns the resources that each manager has used.
func (m *Managers) Usage() (map[string]process.Usage, error) {
	used := map[string]process.Usage{}
	for _, name := range Names {
		usage, err := m.lab.Env.Manager(name).Usage()
		if err != nil {
			return nil, fmt.Errorf("cannot read the usage of %s: %w", name, err)
		}
		used[name] = usage
	}
	return used, nil
}

// CPU returns the processor time of both managers.
func (m *Managers) CPU() (total time.Duration, err error) {
	used, err := m.Usage()
	for _, usage := range used {
		total += usage.CPU
	}
	return total, err
}

// Runtime is the state of a manager after a garbage collection.
type Runtime struct {
	HeapMiB, StacksMiB float64
	Goroutines, Files  int
}

const (
	goroutinesMetric = "go_goroutines"
	heapMetric       = "go_memstats_heap_alloc_bytes"
	stacksMetric     = "go_memstats_stack_inuse_bytes"
)

// Runtime makes a manager collect its garbage, and returns its state. It writes a heap profile to a file in the folder of
// the logs.
func (m *Managers) Runtime(ctx context.Context, name, profile string) (Runtime, error) {
	p := m.lab.Env.Manager(name)
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID()))
	if err != nil {
		return Runtime{}, fmt.Errorf("cannot count the files of %s: %w", name, err)
	}
	if err := m.diagnostics.heap(ctx, p, filepath.Join(m.lab.Dir(), profile)); err != nil {
		return Runtime{}, err
	}
	values, err := m.diagnostics.gauges(ctx, p, goroutinesMetric, heapMetric, stacksMetric)
	return Runtime{
		HeapMiB: results.Mebibytes(int64(values[heapMetric])), StacksMiB: results.Mebibytes(int64(values[stacksMetric])),
		Goroutines: int(values[goroutinesMetric]), Files: len(files),
	}, err
}

// BeginProfiles starts CPU profiles of both managers as soon as they answer, for a duration; 0: none. It writes them
// to cpu-<manager>-<phase>.pprof in the folder of the logs. The returned function waits for their end.
func (m *Managers) BeginProfiles(ctx context.Context, phase string, d time.Duration) (finish func() error) {
	if d == 0 {
		return func() error { return nil }
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range Names {
		p := m.lab.Env.Manager(name)
		group.Go(func() error {
			if err := m.diagnostics.await(ctx, p); err != nil {
				return err
			}
			return m.diagnostics.cpu(ctx, p, d, filepath.Join(m.lab.Dir(), fmt.Sprintf("cpu-%s-%s.pprof", name, phase)))
		})
	}
	return group.Wait
}
