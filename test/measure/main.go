// Command measure measures the resources and the reaction times of the managers of this repository, and compares the
// figures with targets. It runs the real managers, Cluster API, CAPM3 and API servers in the laboratory (package lab).
//
//	bin/measure bench [-clusters 10] [-installed 1000] [-sample ha] [-samples 2]
//	bin/measure scale [-clusters 200] [-dead 0.3] [-foreign 1] [-reactions 100]
//
// bench measures installations and the life of clusters (package bench). scale measures a hub with many installed
// clusters (package scale). Both have the flags -margin, -idle, -profile, -out and -dir; -h lists all flags.
//
// The results are printed with the targets and written as JSON. The exit status is 1 if a target is missed. -margin
// multiplies the targets, for a machine with other load.
package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/bench"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/scale"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/program"
)

var measurements = map[string]func(ctx context.Context, args []string, out io.Writer) error{"bench": bench.Run, "scale": scale.Run}

func main() {
	program.Main(func(ctx context.Context) error {
		if len(os.Args) < 2 || measurements[os.Args[1]] == nil {
			return errors.New("usage: measure bench|scale [flags]")
		}
		return measurements[os.Args[1]](ctx, os.Args[2:], os.Stdout)
	})
}
