package report

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// documentation is where the pages of the documentation are.
const documentation = "https://github.com/openshift-agent/cluster-api-provider-openshift-agent/blob/main/"

const (
	// causeBytes is the length of a cause in a table.
	causeBytes = 100
	// textBytes is the length of a text of several lines.
	textBytes = 8 << 10
	// lineLength is the length of a line of text.
	lineLength = 100
)

// writeTable writes one line for each cluster.
func writeTable(out io.Writer, clusters []*Cluster) error {
	var rows strings.Builder
	rows.WriteString("NAMESPACE\tNAME\tSTATE\tRELEASE\tPROGRESS\tMACHINES\tFOR\tCAUSE\n")
	for _, c := range clusters {
		release, progress := "", ""
		if cp := c.ControlPlane; cp != nil {
			release, progress = cp.Release, cp.Installation
			if cp.Runs != "" {
				release = cp.Runs
			}
			if cp.Upgrade != nil {
				progress = "to " + cp.Upgrade.To
				if cp.Upgrade.Percentage != nil {
					progress += fmt.Sprintf(" %d%%", *cp.Upgrade.Percentage)
				}
			}
		}
		since := ""
		if c.Cause.Since != nil {
			since = duration.HumanDuration(max(0, c.Time.Sub(c.Cause.Since.Time)))
		}
		fmt.Fprintf(&rows, "%s\t%s\t%s\t%s\t%s\t%d/%d\t%s\t%s\n", c.Namespace, c.Name, c.State, oneLine(release), oneLine(progress),
			c.RunningMachines, c.machines(), since, bound.Shorten(firstCause(c), causeBytes))
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0) // as kubectl get
	_, err := io.WriteString(table, rows.String())
	return errors.Join(err, table.Flush())
}

// WriteCause writes why an object has its state, and what to do.
func WriteCause(out io.Writer, object judge.Object, now metav1.Time, c *judge.Cause) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s is %s", object, c.State)
	if c.Reason != "" && c.Reason != string(c.State) {
		fmt.Fprintf(&text, ": %s", c.Reason)
	}
	text.WriteString("\n")
	if c.Message != "" {
		text.WriteString(wrap(c.Message))
	}
	if explained := Explain(c); explained.Advice != "" {
		text.WriteString("\nWhat to do:\n" + wrap(explained.Advice))
		for _, page := range explained.Pages {
			text.WriteString("  " + page + "\n")
		}
	}
	text.WriteString("\n")
	if c.Since != nil {
		fmt.Fprintf(&text, "For:        %s\n", age(now, *c.Since, c.Usual()))
	}
	if c.Condition != "" {
		fmt.Fprintf(&text, "Condition:  %s of %s\n", c.Condition, c.Object)
	}
	if c.Host != "" {
		fmt.Fprintf(&text, "Host:       %s\n", oneLine(c.Host))
	}
	names := make([]string, 0, len(c.ReadFrom))
	for _, o := range c.ReadFrom {
		names = append(names, o.String())
	}
	fmt.Fprintf(&text, "Read from:  %s\n", strings.Join(names, ", "))
	_, err := io.WriteString(out, text.String())
	return err
}

// wrap breaks a text into indented lines. It removes control characters.
func wrap(text string) string {
	const indent = "  "
	var lines strings.Builder
	line := indent
	for _, word := range strings.Fields(bound.Shorten(text, textBytes)) {
		if len(line) > len(indent) && len(line)+1+len(word) > lineLength {
			lines.WriteString(line + "\n")
			line = indent
		}
		if len(line) > len(indent) {
			line += " "
		}
		line += word
	}
	return lines.String() + line + "\n"
}

// Line returns a cause on one line.
func Line(c *judge.Cause) string {
	if c.State == judge.Ready {
		return string(c.State)
	}
	return string(c.State) + ": " + describe(c.Reason, c.Message) + " (" + reporter(c) + ")"
}

// Explained is a cause with the documentation of its reason.
type Explained struct {
	judge.Cause
	// Advice is the meaning of the reason and the action of the user, Pages are pages of the documentation.
	Advice string   `json:"advice,omitempty"`
	Pages  []string `json:"pages,omitempty"`
}

// Explain adds the documentation of its reason to a cause.
func Explain(c *judge.Cause) *Explained {
	explained := &Explained{Cause: *c}
	if advice, found := judge.AdviceFor(c); found && c.State != judge.Ready {
		explained.Advice = advice.Text
		for _, page := range advice.Pages {
			explained.Pages = append(explained.Pages, documentation+page)
		}
	}
	return explained
}

// WriteList writes one line for each cluster, and the kinds that could not be read.
func WriteList(out io.Writer, s *snapshot.Snapshot, clusters []*Cluster) error {
	if len(clusters) == 0 {
		_, err := fmt.Fprintln(out, "No clusters found.")
		return err
	}
	err := writeTable(out, clusters)
	for _, kind := range slices.Sorted(maps.Keys(s.NotReadable)) {
		_, problem := fmt.Fprintf(out, "%ss are not readable (%s).\n", kind, s.NotReadable[kind])
		err = errors.Join(err, problem)
	}
	return err
}
