// Package results writes what was measured: as JSON for programs, as tables for people.
package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// Write writes results as JSON, and makes the folder of the file.
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

// NewTable returns a table without rows.
func NewTable(out io.Writer) *Table {
	return &Table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
}

// Row adds a line; what goes wrong shows when the table is flushed.
func (t *Table) Row(cells ...any) {
	texts := make([]string, 0, len(cells))
	for _, cell := range cells {
		texts = append(texts, fmt.Sprint(cell))
	}
	_, _ = fmt.Fprintln(t, strings.Join(texts, "\t"))
}
