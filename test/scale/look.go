package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

const (
	goroutinesMetric = "go_goroutines"
	heapMetric       = "go_memstats_heap_alloc_bytes"
	stacksMetric     = "go_memstats_stack_inuse_bytes"
)

// lookAtManagers adds what the managers have used: first their memory as it is, then what remains of the heap after a collection.
func (s *scale) lookAtManagers(ctx context.Context, into map[string]*managerReport) error {
	s.looks++
	used, err := s.usage()
	if err != nil {
		return err
	}
	for _, name := range managers {
		r, p := into[name], s.lab.Env.Manager(name)
		r.MemoryMiB, r.PeakMiB, r.CPUSeconds = mebibytes(used[name].Memory), mebibytes(used[name].PeakMemory), seconds(used[name].CPU)
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID()))
		if err != nil {
			return fmt.Errorf("cannot count the files of %s: %w", name, err)
		}
		r.Files = len(files)
		if err := s.diagnostics.Heap(ctx, p, filepath.Join(s.lab.Dir(), fmt.Sprintf("heap-%s-%d.pprof", name, s.looks))); err != nil {
			return err
		}
		values, err := s.diagnostics.Gauges(ctx, p, goroutinesMetric, heapMetric, stacksMetric)
		if err != nil {
			return err
		}
		r.Goroutines, r.HeapMiB, r.StacksMiB = int(values[goroutinesMetric]), mebibytes(int64(values[heapMetric])),
			mebibytes(int64(values[stacksMetric]))
	}
	return nil
}

// beginProfiles begins to write what the managers work on; the returned function waits for the end of that.
func (s *scale) beginProfiles(ctx context.Context, of string) (finish func() error) {
	if s.profile == 0 {
		return func() error { return nil }
	}
	path := func(name string) string { return filepath.Join(s.lab.Dir(), fmt.Sprintf("cpu-%s-%s.pprof", name, of)) }
	return s.diagnostics.BeginCPU(ctx, s.profile, path, s.lab.Env.Manager(env.ControlPlane), s.lab.Env.Manager(env.Bootstrap))
}
