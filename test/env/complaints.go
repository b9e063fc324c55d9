package env

import (
	"maps"
	"os"
	"regexp"
	"slices"
)

// complaint matches an error in the log of a manager.
var complaint = regexp.MustCompile(`(?m)^(?:E\d{4} |panic: |fatal error: ).*$`)

// Complaints returns possible causes of a failure: the processes that ended unexpectedly, and the last errors
// in the log of each manager. It returns at most the given number of errors per manager.
func (e *Env) Complaints(most int) []string {
	var lines []string
	for _, p := range e.group.Processes() {
		if p.Died() {
			lines = append(lines, p.Name+" ended unexpectedly: see "+p.LogPath)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.managers)) {
		manager := e.managers[name].process
		content, err := os.ReadFile(manager.LogPath)
		if err != nil {
			lines = append(lines, name+": "+err.Error())
			continue
		}
		all := complaint.FindAllString(string(content), -1)
		for _, line := range all[max(0, len(all)-most):] {
			lines = append(lines, name+": "+line)
		}
	}
	return lines
}
