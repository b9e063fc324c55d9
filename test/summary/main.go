// Command summary prints the failures of a run of make test with their causes. It reads the files that the run has
// written. Some places keep only the last lines of a failed run, and the first failure is far above them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/failures"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/program"
)

func main() {
	program.Main(func(context.Context) error {
		if len(os.Args) != 2 {
			return errors.New("usage: summary <log of make test>")
		}
		log, err := os.Open(os.Args[1])
		if err != nil {
			return fmt.Errorf("cannot read the failures: %w", err)
		}
		defer log.Close()
		found, err := failures.In(log)
		if err != nil {
			return err
		}
		failures.Summarize(os.Stdout, found)
		return nil
	})
}
