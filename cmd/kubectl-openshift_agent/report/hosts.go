package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
)

// WriteFits writes for each Machine that waits which BareMetalHosts fit, and why the others do not.
func WriteFits(out io.Writer, i *snapshot.Inventory, fits []judge.Fit) error {
	var text strings.Builder
	if len(fits) == 0 {
		fmt.Fprintf(&text, "No Machine in namespace %s waits for a BareMetalHost.\n", i.Namespace)
	}
	for n := range fits {
		if n > 0 {
			text.WriteString("\n")
		}
		writeFit(&text, &fits[n], len(i.Hosts))
	}
	if cause, hidden := i.NotReadable[snapshot.KindConfig]; hidden {
		fmt.Fprintf(&text, "\n%ss are not readable (%s): their requirements for hosts are not compared.\n", snapshot.KindConfig, cause)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func writeFit(text *strings.Builder, f *judge.Fit, hosts int) {
	fmt.Fprintf(text, "%s: %d of %d BareMetalHosts fit", f.Machine, len(f.Fitting), hosts)
	if len(f.Fitting) > 0 {
		text.WriteString(": " + strings.Join(f.Fitting, ", "))
	}
	text.WriteString("\n")
	if f.Problem != "" {
		text.WriteString(wrap(f.Problem))
	}
	for _, other := range f.Others {
		fmt.Fprintf(text, "  %s: %s\n", other.Host, oneLine(other.Reason))
	}
	if f.Reported != nil {
		text.WriteString(wrap("The provider reports " + describe(f.Reported.Reason, f.Reported.Message)))
	}
}
