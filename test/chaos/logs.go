package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// panics matches the traces of a panic in a log, recovered or not.
var panics = regexp.MustCompile(`^panic: |^fatal error: |Observed a panic|panic caught|"panic":|^WARNING: DATA RACE`)

// readLog checks a log from an offset on, and returns the new offset.
func (f *follower) readLog(path string, from int64) (int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return from, fmt.Errorf("cannot read a log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(from, 0); err != nil {
		return from, fmt.Errorf("cannot read a log: %w", err)
	}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return from, nil // an incomplete line is read later
		}
		if err != nil {
			return from, fmt.Errorf("cannot read a log: %w", err)
		}
		from += int64(len(line))
		f.judgeLine(path, line)
	}
}

func (f *follower) judgeLine(path, line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checked[panicRule]++
	if lab.Secrets.MatchString(line) {
		f.report(secretRule, "a line in "+path)
	}
	if panics.MatchString(line) && !f.found[path] { // once: the log has the other lines
		f.found[path] = true
		f.report(panicRule, path+": "+strings.TrimSpace(line))
	}
}
