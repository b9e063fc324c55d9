// Package results has the flags and the results of measurements: as JSON for programs, as tables for people, compared
// with targets.
package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// Options are the flags of all measurements.
type Options struct {
	// Clusters is the number of clusters of Sample: a file in config/samples without .yaml.
	Clusters int
	Sample   string
	// Margin multiplies the targets.
	Margin float64
	// Idle is the time in which an idle hub is measured. Profile is the duration of CPU profiles; 0: none.
	Idle, Profile time.Duration
	// Out is the file of the results, and Dir the folder of logs and profiles.
	Out, Dir string
}

// AddTo adds the flags to a set. The values of Clusters, Sample and Out are their defaults.
func (o *Options) AddTo(flags *flag.FlagSet) {
	flags.IntVar(&o.Clusters, "clusters", o.Clusters, "number of clusters")
	flags.StringVar(&o.Sample, "sample", o.Sample, "sample of the clusters: a file in config/samples without .yaml")
	flags.Float64Var(&o.Margin, "margin", 1, "factor of the targets, for machines with other load")
	flags.DurationVar(&o.Idle, "idle", time.Minute, "duration of the idle time")
	flags.DurationVar(&o.Profile, "profile", 0, "duration of CPU profiles of the managers (default: none)")
	flags.StringVar(&o.Out, "out", o.Out, "file of the results")
	flags.StringVar(&o.Dir, "dir", "", "folder of logs and profiles (default: a new folder in _artifacts)")
}

// Report is the result of a measurement. Its fields are written as JSON.
type Report interface {
	// Print adds the tables for people.
	Print(t *Table)
	// Judged returns the figures with targets.
	Judged() Targets
}

// ErrMissed is returned for a report that misses a target.
var ErrMissed = errors.New("a target was missed")

// Publish writes a report to a file, prints it, and returns ErrMissed if the report misses a target.
func Publish(r Report, path string, out io.Writer) error {
	if err := Write(path, r); err != nil {
		return err
	}
	t := NewTable(out)
	r.Print(t)
	if err := t.Flush(); err != nil {
		return fmt.Errorf("cannot print the results: %w", err)
	}
	if _, err := fmt.Fprintf(out, "\nwritten to %s\n", path); err != nil {
		return fmt.Errorf("cannot print the results: %w", err)
	}
	if r.Judged().Missed() {
		return ErrMissed
	}
	return nil
}

// Write writes results as JSON, and creates the folder of the file.
func Write(path string, results any) error {
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false) // for arrows in names
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(results); err != nil {
		return fmt.Errorf("cannot encode the results: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot write the results: %w", err)
	}
	if err := os.WriteFile(path, content.Bytes(), 0o644); err != nil {
		return fmt.Errorf("cannot write the results: %w", err)
	}
	return nil
}

// Table aligns the cells of its rows in columns when it is flushed.
type Table struct{ *tabwriter.Writer }

// NewTable returns an empty table.
func NewTable(out io.Writer) *Table {
	return &Table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
}

// Row adds a row. Flush returns the errors.
func (t *Table) Row(cells ...any) {
	texts := make([]string, 0, len(cells))
	for _, cell := range cells {
		texts = append(texts, fmt.Sprint(cell))
	}
	_, _ = fmt.Fprintln(t, strings.Join(texts, "\t"))
}
