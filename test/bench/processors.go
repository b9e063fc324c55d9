package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/results"
)

// processors is how much time the processors of this machine have spent, in clock ticks.
type processors struct{ busy, total uint64 }

// readProcessors reads /proc/stat.
func readProcessors() (processors, error) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return processors{}, fmt.Errorf("cannot tell how busy the machine is: %w", err)
	}
	return parseProcessors(string(content))
}

// parseProcessors reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal; what follows is part of
// user and nice (proc(5)).
func parseProcessors(stat string) (processors, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return processors{}, fmt.Errorf("cannot tell how busy the machine is: unknown form of /proc/stat: %q", line)
	}
	var p processors
	for i, field := range fields[1:9] {
		ticks, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return processors{}, fmt.Errorf("cannot tell how busy the machine is: %w", err)
		}
		p.total += ticks
		if idle := i == 3 || i == 4; !idle {
			p.busy += ticks
		}
	}
	return p, nil
}

// busyPercent is how busy all processors together were between two looks at them.
func busyPercent(before, after processors) float64 {
	if after.total <= before.total {
		return 0
	}
	return results.Round(100 * float64(after.busy-before.busy) / float64(after.total-before.total))
}

// machineReport says on what the figures were measured: on a machine that is busy, each of them holds the waiting for a processor.
type machineReport struct {
	Processors  int        `json:"processors"`
	BusyPercent oneAndMany `json:"busyPercent"`
}

func newMachineReport() machineReport { return machineReport{Processors: runtime.NumCPU()} }
