package lab

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
)

// seedVariable holds the seed from which follows how long each host takes for what the Bare Metal Operator has it do;
// empty: another one each time.
const seedVariable = "HOST_SEED"

// HostSeed is the seed that the environment asks for, or a random one. It is written down, as it is needed to have each
// host take as long again: see [Options.HostSeed].
func HostSeed(out io.Writer) (uint64, error) {
	text := os.Getenv(seedVariable)
	if text == "" {
		text = strconv.FormatUint(rand.Uint64(), 10)
	}
	fmt.Fprintf(out, "%s=%s: how long each host takes\n", seedVariable, text)
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", seedVariable, err)
	}
	return seed, nil
}
