package lab

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
)

// seedVariable has the seed of the durations of hosts' operations for the Bare Metal Operator; empty means a
// random seed.
const seedVariable = "HOST_SEED"

// HostSeed returns the seed of the environment, or a random one. It prints the seed, because repeating the
// durations needs it: see [Options.HostSeed].
func HostSeed(out io.Writer) (uint64, error) {
	text := os.Getenv(seedVariable)
	if text == "" {
		text = strconv.FormatUint(rand.Uint64(), 10)
	}
	fmt.Fprintf(out, "%s=%s: seed of the durations of hosts\n", seedVariable, text)
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", seedVariable, err)
	}
	return seed, nil
}
