package provider

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
)

const (
	// containerLimit is the variable with the limit of the container's memory, in bytes.
	containerLimit = "MEMORY_LIMIT"
	// runtimeLimit is the variable by which Go itself is told a limit.
	runtimeLimit = "GOMEMLIMIT"
)

// limitMemory makes Go collect its garbage in time: without a limit it lets the heap double first, and the container is
// killed for what is not needed any more.
func limitMemory() error {
	limit, err := memoryLimit(os.Getenv)
	if err == nil && limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	return err
}

// memoryLimit is nine tenths of what the container may use, which leaves something for what Go does not count. It is
// zero when no limit is known, or the user told Go another.
func memoryLimit(variable func(string) string) (int64, error) {
	text := variable(containerLimit)
	if text == "" || variable(runtimeLimit) != "" {
		return 0, nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit <= 0 {
		return 0, fmt.Errorf("%s must be a number of bytes above 0, not %q", containerLimit, text)
	}
	return limit - limit/10, nil
}
