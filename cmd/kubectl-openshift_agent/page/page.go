package page

import (
	_ "embed" // the template
	"fmt"
	"html/template"
	"strings"
	"sync"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/report"
)

//go:embed index.html.tmpl
var source string

// compiled is the template of the page. It escapes all values by their context.
var compiled = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("index.html").Funcs(template.FuncMap{
		"number": number, "size": size, "class": func(s judge.State) string { return strings.ToLower(string(s)) },
		"add": func(a, b int) int { return a + b }, "pair": func(file, text string) link { return link{file, text} },
	}).Parse(source))
})

// link is a text that may lead to a file of the archive.
type link struct{ File, Text string }

// view is what the template shows.
type view struct {
	*Input

	Report   *report.Cluster
	Cause    *report.Explained
	Tree     string
	Timeline *timeline
	Hosts    []host
	Objects  []object
	Entries  []entry
	// Hidden is the number of older entries that are not shown.
	Hidden int
}

// At is the time of the archive.
func (v *view) At() string { return v.Time.UTC().Format(time.RFC1123) }

// Classes are the colors of the stages.
func (v *view) Classes() []string {
	return []string{"prepare", "prepare2", "boot", "bind", "bind2", "install", "node", "bmh", "stage0", "stage1", "failed", "slow"}
}

// Legend returns the stages of a host with their colors.
func (v *view) Legend() []bar {
	var legend []bar
	for _, s := range append(hostSteps(), nodeSteps...) {
		legend = append(legend, bar{Class: s.class, Label: s.label})
	}
	return append(legend, bar{Class: "bmh", Label: "Bare Metal Operator"}, bar{Class: "stage1", Label: "Stages of assisted-service"},
		bar{Class: "failed", Label: "Needs attention"}, bar{Class: "slow", Label: "Slow"})
}

// Render returns the page.
func Render(in *Input) (string, error) {
	v := &view{Input: in, Objects: objectsOf(in), Entries: entriesOf(in)}
	if c := snapshotOf(in); c != nil {
		v.Report = report.Of(c)
		v.Cause = report.Explain(&v.Report.Cause)
		var tree strings.Builder
		if err := report.WriteTree(&tree, report.Tree(v.Report)); err != nil {
			return "", fmt.Errorf("cannot write the tree: %w", err)
		}
		v.Tree, v.Hosts, v.Timeline = tree.String(), hostsOf(in, v.Report), timelineOf(in, c, v.Report, v.Entries)
	}
	if v.Hidden = max(0, len(v.Entries)-maxEntries); v.Hidden > 0 {
		v.Entries = v.Entries[v.Hidden:]
	}
	var out strings.Builder
	if err := compiled().Execute(&out, v); err != nil {
		return "", fmt.Errorf("cannot write the page: %w", err)
	}
	return out.String(), nil
}

// size returns a length with its unit.
func size(bytes int) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", bytes)
}
