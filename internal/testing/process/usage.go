package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTicks is the unit of CPU times in /proc: USER_HZ, which is 100 on every Linux architecture that Go knows (proc(5)).
const clockTicks = 100

// Usage is what a process has used since it was started last.
type Usage struct {
	// CPU is the time in user and kernel mode, of all threads.
	CPU time.Duration
	// PeakMemory is the largest resident set (VmHWM), in bytes.
	PeakMemory int64
	// Memory is the present resident set (VmRSS), in bytes.
	Memory int64
	// Anonymous is the part of Memory that is the process's own (RssAnon), in bytes. The rest are pages of its program file,
	// which the kernel can drop at any time.
	Anonymous int64
}

// Usage reads what the process has used so far. It fails when the process does not run, and everywhere but on Linux.
func (p *Process) Usage() (Usage, error) {
	if !p.Running() {
		return Usage{}, fmt.Errorf("%s does not run", p.Name)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return Usage{}, fmt.Errorf("cannot read the CPU time of %s: %w", p.Name, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return Usage{}, fmt.Errorf("cannot read the memory of %s: %w", p.Name, err)
	}
	usage, err := parseUsage(string(stat), string(status))
	if err != nil {
		return Usage{}, fmt.Errorf("cannot read the usage of %s: %w", p.Name, err)
	}
	return usage, nil
}

// parseUsage reads the contents of /proc/<pid>/stat and /proc/<pid>/status.
func parseUsage(stat, status string) (Usage, error) {
	// The second field is the name in parentheses, which may contain spaces and parentheses. utime and stime are the
	// fields 14 and 15 of proc(5).
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return Usage{}, fmt.Errorf("unknown form of stat: %d fields", len(fields))
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("cannot read a CPU time: %w", err)
		}
		ticks += n
	}
	usage := Usage{CPU: time.Duration(ticks) * time.Second / clockTicks}
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		target := map[string]*int64{"VmHWM": &usage.PeakMemory, "VmRSS": &usage.Memory, "RssAnon": &usage.Anonymous}[name]
		if target == nil {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("cannot read %s: %w", name, err)
		}
		*target = kib * 1024
	}
	return usage, nil
}
