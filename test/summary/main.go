// Command summary says again what failed in a run of make test, and why, from what the run has written: of a failed run
// only the last lines are kept in some places, and what failed first stands far above.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/program"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/results"
)

func main() {
	program.Main(func(context.Context) error {
		if len(os.Args) != 2 {
			return errors.New("usage: summary <log of make test>")
		}
		log, err := os.Open(os.Args[1])
		if err != nil {
			return fmt.Errorf("cannot tell what failed: %w", err)
		}
		defer log.Close()
		failures, err := results.FailuresIn(log)
		if err != nil {
			return err
		}
		results.Summarize(os.Stdout, failures)
		return nil
	})
}
