package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pending are the files and folders that are not checked yet. A folder ends with a slash, and stands for the files directly in it.
type pending []string

// readPending reads the list of pending paths: one a line, comments begin with #. Without the file nothing is pending.
func (c *checker) readPending() (pending, error) {
	content, err := os.ReadFile(filepath.Join(c.root, pendingList))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the pending paths: %w", err)
	}
	var paths pending
	for line := range strings.SplitSeq(string(content), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			paths = append(paths, line)
		}
	}
	return paths, nil
}

// apply returns the findings in files that are not pending, and the pending paths without any finding.
func (p pending) apply(found []finding) (reported []finding, unused []string) {
	used := make([]bool, len(p))
	for _, f := range found {
		i := slices.IndexFunc(p, func(path string) bool { return path == f.path || path == filepath.Dir(f.path)+"/" })
		if i < 0 {
			reported = append(reported, f)
		} else {
			used[i] = true
		}
	}
	for i, path := range p {
		if !used[i] {
			unused = append(unused, path)
		}
	}
	return reported, unused
}
