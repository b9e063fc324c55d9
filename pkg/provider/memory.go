package provider

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
)

const (
	// containerLimit is the environment variable with the memory limit of the container, in bytes.
	containerLimit = "MEMORY_LIMIT"
	// runtimeLimit is the environment variable with which a user sets the memory limit of Go.
	runtimeLimit = "GOMEMLIMIT"
)

// limitMemory sets the memory limit of Go. Without a limit Go lets the heap double before it collects
// garbage, and the container is killed.
func limitMemory() error {
	limit, err := memoryLimit(os.Getenv)
	if err == nil && limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	return err
}

// memoryLimit returns nine tenths of the container's memory limit; the rest is for memory that Go does not
// count. It is zero if no limit is known, or the user has set a limit of Go.
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
