package bench

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

// processors is the time of the processors of this machine, in clock ticks.
type processors struct{ busy, total uint64 }

// readProcessors reads /proc/stat.
func readProcessors() (processors, error) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return processors{}, fmt.Errorf("cannot read the load of the machine: %w", err)
	}
	return parseProcessors(string(content))
}

// parseProcessors reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. The following
// numbers are included in user and nice (proc(5)).
func parseProcessors(stat string) (processors, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return processors{}, fmt.Errorf("cannot read the load of the machine: unknown form of /proc/stat: %q", line)
	}
	var p processors
	for i, field := range fields[1:9] {
		ticks, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return processors{}, fmt.Errorf("cannot read the load of the machine: %w", err)
		}
		p.total += ticks
		if idle := i == 3 || i == 4; !idle {
			p.busy += ticks
		}
	}
	return p, nil
}

// busyPercent returns the load of all processors between two samples.
func busyPercent(before, after processors) float64 {
	if after.total <= before.total {
		return 0
	}
	return results.Round(100 * float64(after.busy-before.busy) / float64(after.total-before.total))
}

// machineReport describes the machine. On a busy machine each figure includes the wait for a processor.
type machineReport struct {
	Processors  int        `json:"processors"`
	BusyPercent oneAndMany `json:"busyPercent"`
}

func newMachineReport() machineReport { return machineReport{Processors: runtime.NumCPU()} }
